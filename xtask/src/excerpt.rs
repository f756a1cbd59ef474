//! What a failed suite printed about its failures, extracted from all of its output. It is shown
//! again at the end, where a reader of a long log looks first.

use std::collections::VecDeque;

/// Lines about failures that are kept. A test's output before it fails can be long.
const FAILURE_LINES: usize = 400;
/// Lines kept from the end of an output that does not report failures in a known form.
const LAST_LINES: usize = 40;

/// Collects lines as the output passes.
#[derive(Default)]
pub(crate) struct Excerpt {
    failures: Vec<String>,
    last: VecDeque<String>,
    is_in_failures: bool,
}

impl Excerpt {
    pub(crate) fn take(&mut self, line: &str) {
        self.is_in_failures |= begins_failures(line);
        if self.is_in_failures && self.failures.len() < FAILURE_LINES {
            self.failures.push(line.to_owned());
        }
        self.is_in_failures &= !ends_failures(line);
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// The failures, or the last lines if there are none (after a build failure or a signal).
    pub(crate) fn lines(self) -> Vec<String> {
        if self.failures.is_empty() { self.last.into() } else { self.failures }
    }
}

/// Recognises the forms of Rust's test harness and of pytest.
fn begins_failures(line: &str) -> bool {
    line == "failures:" || line.contains("= FAILURES =") || line.contains("= ERRORS =")
}

fn ends_failures(line: &str) -> bool {
    line.starts_with("test result:") || line.contains("= slowest ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(output: &str) -> String {
        let mut excerpt = Excerpt::default();
        output.lines().for_each(|line| excerpt.take(line));
        excerpt.lines().join("\n")
    }

    #[test]
    fn the_failures_of_each_test_binary_are_kept() {
        let binary = |name: &str| {
            format!(
                "running 2 tests\n.F\nfailures:\n{name} panicked\nfailures:\n    {name}\ntest result: FAILED.\n"
            )
        };
        let output = [binary("a"), "running 1 test\n.\ntest result: ok.\n".into(), binary("b")];
        let kept = |name| {
            format!("failures:\n{name} panicked\nfailures:\n    {name}\ntest result: FAILED.")
        };
        assert_eq!(excerpt(&output.concat()), format!("{}\n{}", kept("a"), kept("b")));
    }

    #[test]
    fn an_output_without_known_failures_gives_its_end() {
        let output: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let kept = excerpt(&output.join("\n"));
        assert_eq!(kept.lines().count(), LAST_LINES);
        assert!(kept.ends_with("98\n99"), "{kept}");
    }
}
