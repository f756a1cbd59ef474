//! A minimal HTTP client for procedure calls: a request, a response, and a connection that is
//! kept for the next.

use std::io::{BufRead, BufReader, Read, Write};

use crate::{
    client::{ClientError, Server},
    stream::Stream,
};

/// Maximum length of a line of a response's head, in bytes.
const HEAD_LINE_LEN_MAX: u64 = 16 << 10;

/// Maximum number of lines in a response's head.
const HEAD_LINES_MAX: usize = 128;

/// Maximum length of a body, in bytes.
const BODY_LEN_MAX: u64 = 256 << 20;

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// A request failed before a response arrived, or the response is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{server} does not speak HTTP ({what}); is it a Tokaido server?")]
    Protocol { server: String, what: &'static str },
}

/// A connection.
pub(crate) struct HttpClient {
    server: Server,
    stream: BufReader<Stream>,
}

impl HttpClient {
    pub(crate) fn connect(server: &Server) -> Result<Self, ClientError> {
        Ok(Self { server: server.clone(), stream: BufReader::new(server.open()?) })
    }

    /// Sends a request, with the server's password if there is one, and reads the response.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
    ) -> Result<Response, HttpError> {
        let host = self.stream.get_ref().host().map_err(|error| self.server.io_error(error))?;
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(password) = self.server.password() {
            request.push_str(&format!("Authorization: Bearer {password}\r\n"));
        }
        if let Some(body) = body {
            let len = body.len();
            request
                .push_str(&format!("Content-Type: application/json\r\nContent-Length: {len}\r\n"));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        let sent = self.stream.get_mut().write_all(&bytes);
        sent.map_err(|error| self.server.io_error(error))?;
        self.read_response()
    }

    fn read_response(&mut self) -> Result<Response, HttpError> {
        let status_line = self.read_line()?;
        let mut words = status_line.split(' ');
        let status = match (words.next(), words.next().map(str::parse)) {
            (Some("HTTP/1.1" | "HTTP/1.0"), Some(Ok(status))) => status,
            _ => return Err(self.protocol("no status line")),
        };
        let (mut len, mut content_type) = (None, None);
        for _ in 0..HEAD_LINES_MAX {
            let line = self.read_line()?;
            if line.is_empty() {
                let len = len.ok_or_else(|| self.protocol("no Content-Length"))?;
                let body = self.read_body(len)?;
                return Ok(Response { status, content_type, body });
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| self.protocol("a header without a colon"))?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => len = value.trim().parse().ok(),
                "content-type" => content_type = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        Err(self.protocol("too many headers"))
    }

    fn read_line(&mut self) -> Result<String, HttpError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(HEAD_LINE_LEN_MAX);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| self.server.io_error(error))?;
        if line.is_empty() {
            return Err(ClientError::Closed { server: self.server.to_string() }.into());
        }
        let text =
            line.strip_suffix(b"\n").ok_or_else(|| self.protocol("a line that is too long"))?;
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        String::from_utf8(text.to_vec()).map_err(|_| self.protocol("a head that is no text"))
    }

    fn read_body(&mut self, len: u64) -> Result<Vec<u8>, HttpError> {
        if len > BODY_LEN_MAX {
            return Err(self.protocol("a body that is too long"));
        }
        let mut body = Vec::new();
        let read = (&mut self.stream).take(len).read_to_end(&mut body);
        read.map_err(|error| self.server.io_error(error))?;
        if (body.len() as u64) < len {
            return Err(ClientError::Closed { server: self.server.to_string() }.into());
        }
        Ok(body)
    }

    fn protocol(&self, what: &'static str) -> HttpError {
        HttpError::Protocol { server: self.server.to_string(), what }
    }
}

/// The message of an unsuccessful answer: `{"error": {"message": …}}`, or the whole body.
pub(crate) fn refusal(response: &Response) -> String {
    let parsed: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match parsed["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("{} {}", response.status, String::from_utf8_lossy(&response.body)),
    }
}
