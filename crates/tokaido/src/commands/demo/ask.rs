//! Sends requests to the server, and shows each with its answer and its time.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use tokaido_wire::resp::Reply;

use crate::{client::Client, commands::shell::reply, error::Error, http::HttpClient, style::Style};

/// The column where times end.
pub(crate) const WIDTH: usize = 78;

/// Maximum number of lines shown of one answer.
const ANSWER_LINES_MAX: usize = 12;

/// Both ways to reach the server, and the output of the tour.
pub(crate) struct Asker<W> {
    pub(crate) client: Client,
    pub(crate) http: HttpClient,
    pub(crate) out: W,
    pub(crate) style: Style,
}

impl<W: Write> Asker<W> {
    /// Sends a command.
    pub(crate) fn redis(&mut self, command: &[&str]) -> Result<(Reply, Duration), Error> {
        let started = Instant::now();
        let answer = self.client.call_raw(command)?;
        let took = started.elapsed();
        let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
        self.show(&words.join(" "), took, &reply::format(&answer)).map_err(Error::Stdout)?;
        Ok((answer, took))
    }

    /// Sends a request.
    pub(crate) fn http(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&str>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let response = self.http.request(method, target, body.map(str::as_bytes))?;
        let took = started.elapsed();
        let asked = match body {
            Some(body) => format!("{method} {target}  {body}"),
            None => format!("{method} {target}"),
        };
        let text = String::from_utf8_lossy(&response.body);
        let answer = match response.status {
            200 => text.trim_end().to_owned(),
            status => format!("({status}) {}", text.trim_end()),
        };
        self.show(&asked, took, &answer).map_err(Error::Stdout)
    }

    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n{}", self.style.bold(text))
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "  {text}")
    }

    fn show(&mut self, asked: &str, took: Duration, answer: &str) -> io::Result<()> {
        let time = format_time(took);
        let room = WIDTH.saturating_sub(2 + asked.chars().count() + time.chars().count()).max(2);
        let (asked, time) = (self.style.accent(asked), self.style.dim(&time));
        writeln!(self.out, "  {asked}{:room$}{time}", "")?;
        let lines: Vec<&str> = answer.lines().collect();
        for line in lines.iter().take(ANSWER_LINES_MAX) {
            writeln!(self.out, "    {line}")?;
        }
        if let Some(more) = lines.len().checked_sub(ANSWER_LINES_MAX).filter(|&more| more > 0) {
            writeln!(self.out, "    {}", self.style.dim(&format!("… and {more} more lines")))?;
        }
        self.out.flush()
    }
}

/// A time with three significant digits.
pub(crate) fn format_time(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        10.0..100.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.0} ms"),
    }
}

/// A word as it can be typed into a POSIX shell.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:=@%+,".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits() {
        let shown = [2_346, 12_345, 123_456].map(|us| format_time(Duration::from_micros(us)));
        assert_eq!(shown, ["2.35 ms", "12.3 ms", "123 ms"]);
    }

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        let shown = ["stations.travel", "", "a b", "it's", "*"].map(shell_word);
        assert_eq!(shown, ["stations.travel", "''", "'a b'", "'it'\\''s'", "'*'"]);
    }
}
