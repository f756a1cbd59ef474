//! The list of known exceptions: one a line, `rule count place`.

use super::Finding;

#[derive(Debug)]
pub(super) struct Ratchet {
    exceptions: Vec<Exception>,
}

#[derive(Debug)]
struct Exception {
    rule: String,
    count: usize,
    place: String,
}

impl Ratchet {
    /// Reads the list; `#` begins a comment line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut exceptions = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.splitn(3, ' ');
            let (rule, count, place) = (fields.next(), fields.next(), fields.next());
            let count = count.and_then(|count| count.parse().ok());
            let (Some(rule), Some(count), Some(place)) = (rule, count, place) else {
                return Err(format!("xtask/tidy.txt:{}: not `rule count place`", index + 1));
            };
            exceptions.push(Exception { rule: rule.into(), count, place: place.into() });
        }
        Ok(Self { exceptions })
    }

    pub(super) fn len(&self) -> usize {
        self.exceptions.len()
    }

    /// Complains about findings that are not on the list, have grown, or have shrunk without the
    /// list being updated: otherwise they could grow back.
    pub(super) fn judge(&self, findings: &[Finding]) -> Vec<String> {
        let mut complaints = Vec::new();
        for finding in findings {
            let known = self.exceptions.iter().find(|e| e.is_about(finding));
            if known.is_none_or(|exception| finding.count > exception.count) {
                complaints.push(finding.message.clone());
            }
        }
        for exception in &self.exceptions {
            let Exception { rule, count, place } = exception;
            match findings.iter().find(|finding| exception.is_about(finding)) {
                None => complaints.push(format!(
                    "xtask/tidy.txt: {place} is no exception to {rule} any more; remove its line"
                )),
                Some(finding) if finding.count < *count => complaints.push(format!(
                    "xtask/tidy.txt: {place} is down to {}; lower its {rule} from {count}",
                    finding.count
                )),
                Some(_) => {}
            }
        }
        complaints
    }
}

impl Exception {
    fn is_about(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.place == finding.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(count: usize) -> Finding {
        Finding { rule: "file-length", place: "a.rs".into(), count, message: "a.rs".into() }
    }

    #[test]
    fn what_is_new_or_has_grown_is_a_complaint() {
        let ratchet = Ratchet::parse("# why\nfile-length 600 a.rs\n").unwrap();
        assert!(ratchet.judge(&[finding(600)]).is_empty());
        assert_eq!(ratchet.judge(&[finding(601)]), ["a.rs"]);
        assert_eq!(Ratchet::parse("").unwrap().judge(&[finding(501)]), ["a.rs"]);
    }

    #[test]
    fn what_got_better_must_be_written_down() {
        let ratchet = Ratchet::parse("file-length 600 a.rs").unwrap();
        assert!(ratchet.judge(&[finding(550)])[0].contains("lower its file-length from 600"));
        assert!(ratchet.judge(&[])[0].contains("remove its line"));
    }

    #[test]
    fn a_line_that_is_no_exception_is_named() {
        let error = Ratchet::parse("file-length many a.rs").unwrap_err();
        assert_eq!(error, "xtask/tidy.txt:1: not `rule count place`");
    }
}
