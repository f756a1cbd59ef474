//! Errors in HTTP: a fitting status, and `{"error": {"message": …}}`.

use std::fmt::Debug;

use hyper::{
    Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
};
use serde_json::json;
use tokaido_script::{CallError, ProcedureId};
use tokaido_store::{CommitError, DatabaseError, ReadError, TransactError, WriteError};

use super::body::Reply;
use crate::{faults, placement::RunError, procedures::CallFailure, program::Program};

/// The value of `Allow` for a path that answers these methods. OPTIONS is answered everywhere.
pub(super) fn allowed(methods: &[&str]) -> String {
    let mut methods = [methods, &["OPTIONS"]].concat();
    methods.sort_unstable();
    methods.dedup();
    methods.join(", ")
}

/// Why a request failed.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    message: String,
    traceback: Option<String>,
    /// A code for programs, if the procedure gave one.
    code: Option<String>,
    /// A procedure gave the error, so it has been counted, and logged if it should be.
    is_of_procedure: bool,
    /// The procedure is broken; it did not refuse deliberately.
    is_fault: bool,
    /// The request id in the log.
    request_id: Option<String>,
    /// Rare, and large: boxed, so that results that may hold an error stay small.
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// The response sent before; after it, nothing can be said except that it is incomplete.
    sent: Option<Box<Response<Reply>>>,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            traceback: None,
            code: None,
            is_of_procedure: false,
            is_fault: false,
            request_id: None,
            header: None,
            sent: None,
        }
    }

    /// The error, after this part of a response.
    pub(super) fn after(self, sent: Response<Reply>) -> Self {
        Self { sent: Some(Box::new(sent)), ..self }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The path is known, but not for this method.
    pub(super) fn method(allowed: &[&str]) -> Self {
        let list = self::allowed(allowed);
        let message = format!("this path answers {list}");
        let mut error = Self::new(StatusCode::METHOD_NOT_ALLOWED, message);
        // Methods come from files; one that is not a header value was refused at loading.
        error.header =
            HeaderValue::from_str(&list).ok().map(|list| Box::new((header::ALLOW, list)));
        error
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some(Box::new((name, HeaderValue::from_static(value))));
        self
    }

    /// The error of a declared route's handler: visitors are not its callers, so they are not shown
    /// its internals.
    pub(super) fn of_route(self) -> Self {
        let status = if self.is_fault { StatusCode::INTERNAL_SERVER_ERROR } else { self.status };
        Self { status, traceback: None, ..self }
    }

    /// The error of a handler that no client calls by name: only the log says what its fault is.
    pub(super) fn of_handler(self) -> Self {
        if !self.is_fault {
            return self;
        }
        let message = "Internal Server Error".to_owned();
        Self { message, code: None, ..self.of_route() }
    }

    /// The error of a call of this procedure. What failed after the procedure, such as its commit,
    /// is counted as its failure, and logged.
    pub(super) fn of_call(mut self, program: &Program, id: ProcedureId) -> Self {
        if self.status.is_server_error() && !self.is_of_procedure {
            program.count_failure(id, false);
            self.request_id = Some(faults::log(&program.get(id).name, &self.message, ""));
        }
        self
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What the handler had written before it failed.
    pub(super) fn into_sent(self) -> Vec<u8> {
        self.sent.map(|sent| sent.into_body().into_data()).unwrap_or_default()
    }

    pub(super) fn into_response(self) -> Response<Reply> {
        if let Some(sent) = self.sent {
            return *sent;
        }
        let mut error = json!({ "message": self.message });
        if let Some(traceback) = self.traceback {
            error["traceback"] = traceback.into();
        }
        if let Some(request_id) = self.request_id {
            error["request_id"] = request_id.into();
        }
        if let Some(code) = self.code {
            error["code"] = code.into();
        }
        let mut body = json!({ "error": error }).to_string();
        body.push('\n');
        let mut response = Response::new(Reply::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(self.header.map(|header| *header));
        response
    }
}

impl From<CallFailure> for HttpError {
    fn from(failure: CallFailure) -> Self {
        let CallFailure { error, request_id } = failure;
        let message = error.to_string();
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        let answer = match error {
            CallError::TimeLimit { .. } | CallError::MemoryLimit { .. } => {
                Self::unavailable(message)
            }
            CallError::Refused { code, status, .. } => {
                let status = status.and_then(|status| StatusCode::from_u16(status).ok());
                Self { code, ..Self::new(status.unwrap_or(unprocessable), message) }
            }
            CallError::Raised { traceback, .. } => {
                let traceback = Some(traceback);
                Self { traceback, is_fault: true, ..Self::new(unprocessable, message) }
            }
            _ => Self { is_fault: true, ..Self::new(unprocessable, message) },
        };
        Self { is_of_procedure: true, request_id, ..answer }
    }
}

impl From<ReadError> for HttpError {
    fn from(error: ReadError) -> Self {
        let status = match error {
            ReadError::KeyLength { .. } | ReadError::Unordered => StatusCode::BAD_REQUEST,
            ReadError::CursorLost => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WriteError> for HttpError {
    fn from(error: WriteError) -> Self {
        let status = match error {
            WriteError::Read(error) => return error.into(),
            WriteError::ValueLength { .. }
            | WriteError::RecordTooLarge { .. }
            | WriteError::TransactionTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            WriteError::Name(error) => return error.into(),
            WriteError::Mounted | WriteError::Dropped => StatusCode::CONFLICT,
            WriteError::Poisoned { .. } | WriteError::Raced => StatusCode::SERVICE_UNAVAILABLE,
            WriteError::ReadOnly => {
                return Self { message: error.to_string(), ..Self::method(&["GET", "HEAD"]) };
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CommitError> for HttpError {
    fn from(error: CommitError) -> Self {
        let status = match error {
            CommitError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            CommitError::Conflict | CommitError::Undetermined { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<DatabaseError> for HttpError {
    fn from(error: DatabaseError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<RunError> for HttpError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Read(error) => error.into(),
            RunError::Commit(error) => error.into(),
            RunError::Lost => Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl<E: Into<Self> + Debug> From<TransactError<E>> for HttpError {
    fn from(error: TransactError<E>) -> Self {
        match error {
            TransactError::Body(error) => error.into(),
            TransactError::Write(error) => error.into(),
            TransactError::Commit(error) => error.into(),
            error => Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::atomic::Ordering::Relaxed};

    use tokaido_script::{Mode, Procedure};

    use super::*;

    #[test]
    fn what_fails_behind_a_procedure_is_counted_as_its_failure() {
        let (name, path) = ("t.put".to_owned(), PathBuf::new());
        let (mode, line) = (Mode::Write, 1);
        let (route, hook, is_of_worker) = (None, None, false);
        let procedure = Procedure { name, mode, route, hook, path, line, is_of_worker };
        let (program, id) = (Program::of(vec![procedure]), ProcedureId::from_index(0));
        let errors = || program.statistics().map(|(_, s)| s.errors.load(Relaxed)).sum::<u64>();
        let of_call = |error: HttpError| error.of_call(&program, id).request_id.is_some();
        let refused = |status| {
            let (message, code) = ("closed".to_owned(), None);
            let error = CallError::Refused { message, code, status: Some(status), is_kept: false };
            HttpError::from(CallFailure { error, request_id: None })
        };
        assert!(!of_call(refused(503)) && !of_call(refused(404)));
        assert!(!of_call(HttpError::not_found("gone with a reload")));
        assert_eq!(errors(), 0);
        assert!(of_call(CommitError::DiskFull.into()));
        assert_eq!(errors(), 1);
    }
}
