//! Single requests to a server and their answers, for those that are few and slow.

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream, ToSocketAddrs},
    time::Duration,
};

use super::error::SuiteError;

/// The longest that an answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);

/// Characters of an answer that an error shows.
const SHOWN_LEN: usize = 200;

fn connect(address: impl ToSocketAddrs + fmt::Debug) -> Result<TcpStream, SuiteError> {
    let failed = || SuiteError::system(format!("cannot connect to {address:?}"));
    let stream = TcpStream::connect(&address).map_err(failed())?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(failed())?;
    stream.set_nodelay(true).map_err(failed())?;
    Ok(stream)
}

pub(super) fn unexpected(what: &str, answer: &str) -> SuiteError {
    let answer = answer.chars().take(SHOWN_LEN).collect();
    SuiteError::Answer { what: what.to_owned(), answer }
}

/// The body of the answer to a GET of `path`.
pub(super) fn http(port: u16, path: &str) -> Result<String, SuiteError> {
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    body((Ipv4Addr::LOCALHOST, port), &head)
}

/// The body of the answer to a POST of a Kyoto Tycoon table to `path`, at a host and port.
pub(super) fn post(address: &str, path: &str, table: &str) -> Result<String, SuiteError> {
    let len = table.len();
    body(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: text/tab-separated-values\r\ncontent-length: {len}\r\n\r\n{table}"
        ),
    )
}

/// The body of the answer to a request, after which the server closes the connection.
fn body(address: impl ToSocketAddrs + fmt::Debug, request: &str) -> Result<String, SuiteError> {
    let mut stream = connect(address)?;
    let what = request.lines().next().unwrap_or_default();
    let failed = || SuiteError::system(what);
    stream.write_all(request.as_bytes()).map_err(failed())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed())?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
    let is_good = head.split(' ').nth(1) == Some("200");
    if !is_good {
        return Err(unexpected(what, &answer));
    }
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Ok(if is_chunked { chunks(body) } else { body.to_owned() })
}

/// The contents of chunks.
fn chunks(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((head, rest)) = body.split_once("\r\n") {
        let len = usize::from_str_radix(head.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..len).filter(|chunk| !chunk.is_empty()) else { break };
        text.push_str(chunk);
        body = rest[len..].trim_start_matches("\r\n");
    }
    text
}

/// The answer to a Redis command, without its type; that of a bulk string is its text.
pub(super) fn redis(port: u16, words: &[&str]) -> Result<String, SuiteError> {
    match Redis::connect(port)?.command(words)? {
        Reply::Text(text) => Ok(text),
        Reply::Items(_) => Err(unexpected(words[0], "an array")),
    }
}

/// A connection to a server that speaks the Redis protocol.
pub(super) struct Redis {
    answers: BufReader<TcpStream>,
}

/// An answer from Redis: anything but an array is text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Text(String),
    Items(Vec<Self>),
}

impl Redis {
    pub(super) fn connect(port: u16) -> Result<Self, SuiteError> {
        Ok(Self { answers: BufReader::new(connect((Ipv4Addr::LOCALHOST, port))?) })
    }

    pub(super) fn command(&mut self, words: &[&str]) -> Result<Reply, SuiteError> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let failed = SuiteError::system(words[0]);
        self.answers.get_mut().write_all(request.as_bytes()).map_err(failed)?;
        self.reply(words[0])
    }

    fn reply(&mut self, command: &str) -> Result<Reply, SuiteError> {
        let failed = || SuiteError::system(command);
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(failed())?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("$", len)) => {
                // Including the line end.
                let len: usize = len.parse().map_err(|_| unexpected(command, line))?;
                let mut text = vec![0; len + 2];
                self.answers.read_exact(&mut text).map_err(failed())?;
                text.truncate(len);
                Ok(Reply::Text(String::from_utf8_lossy(&text).into_owned()))
            }
            Some(("*", count)) => {
                let count: usize = count.parse().map_err(|_| unexpected(command, line))?;
                (0..count).map(|_| self.reply(command)).collect::<Result<_, _>>().map(Reply::Items)
            }
            Some(("+" | ":" | ",", text)) => Ok(Reply::Text(text.to_owned())),
            _ => Err(unexpected(command, line)),
        }
    }
}

/// The last number in an answer.
pub(super) fn last_number(what: &str, answer: &str) -> Result<f64, SuiteError> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
    let words = answer.split(|letter: char| !is_of_number(letter));
    let number = words.filter_map(|word| word.parse().ok()).next_back();
    number.ok_or_else(|| unexpected(what, answer))
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// A server that gives one answer.
    fn answering(answer: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        port
    }

    #[test]
    fn bodies_are_read_whole_and_in_chunks() {
        let whole = answering("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n0.25");
        assert_eq!(http(whole, "/").unwrap(), "0.25");
        let head =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n0.2\r\n1\r\n5\r\n0\r\n\r\n";
        assert_eq!(http(answering(head), "/").unwrap(), "0.25");
        let refused = http(answering("HTTP/1.1 500 No\r\n\r\nwhy"), "/").unwrap_err();
        assert!(refused.to_string().contains("why"), "{refused}");
    }

    #[test]
    fn answers_of_redis_are_read() {
        assert_eq!(redis(answering(":7\r\n"), &["GET"]).unwrap(), "7");
        assert_eq!(redis(answering("$4\r\n0.25\r\n"), &["GET"]).unwrap(), "0.25");
        let answer = answering("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n:7\r\n");
        let reply = Redis::connect(answer).unwrap().command(&["SCAN"]).unwrap();
        let text = |text: &str| Reply::Text(text.to_owned());
        assert_eq!(reply, Reply::Items(vec![text("0"), Reply::Items(vec![text("a"), text("7")])]));
        assert!(redis(answering("-ERR no\r\n"), &["GET"]).is_err());
    }

    #[test]
    fn the_last_number_is_read_whatever_is_around_it() {
        assert_eq!(last_number("", "{\"result\":\"1.5e-06\"}\n").unwrap(), 1.5e-6);
        assert!(last_number("", "none").is_err());
    }
}
