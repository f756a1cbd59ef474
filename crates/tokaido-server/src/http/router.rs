//! Finds the procedure that answers a path.
//!
//! Patterns are split at `/`. A segment is literal, `:name` for exactly one segment, or, at the
//! end, `*name` for all that is left. Where several match, a literal takes precedence over `:name`,
//! and that over `*name`, from left to right.

use std::{borrow::Cow, collections::BTreeMap};

use tokaido_script::{ProcedureId, Route, percent};

/// Maximum number of segments of a path that is looked up.
const SEGMENTS_MAX: usize = 64;

/// First segments of paths that the server answers itself.
const RESERVED: [&str; 4] = ["v1", "rpc", "healthz", "metrics"];

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'r, 'p> {
    /// To this procedure, with the decoded values of `:name` and `*name`.
    Procedure(ProcedureId, Vec<(&'r str, Cow<'p, str>)>),
    /// The path is known, but only for these methods.
    OtherMethods(Vec<&'r str>),
    /// The path is unknown.
    Nothing,
    /// A matched part is not UTF-8 once it is decoded.
    BadPath,
}

/// A route that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    #[error("a route starts with \"/\", as in \"GET /hits/:page\"")]
    NoSlash,
    #[error("\":\" and \"*\" in a route need a name behind them, as in \"/hits/:page\"")]
    NoName,
    #[error("\"*name\" takes the rest of the path, so it can only be the last part of a route")]
    RestNotLast,
    #[error("paths below /{0} belong to the server; choose another first part")]
    Reserved(&'static str),
    #[error("another procedure answers it already")]
    Taken(ProcedureId),
    #[error("a route has at most {SEGMENTS_MAX} parts")]
    TooLong,
}

#[derive(Debug, Default)]
pub(crate) struct Router {
    root: Node,
    /// The endpoints of paths that are literal throughout and need no decoding. The tree would find
    /// them first, too.
    whole: BTreeMap<Box<str>, Vec<Endpoint>>,
}

#[derive(Debug, Default)]
struct Node {
    literal: BTreeMap<Box<str>, Node>,
    parameter: Option<Box<Node>>,
    /// Routes that end here.
    here: Vec<Endpoint>,
    /// Routes that match everything from here on.
    rest: Vec<Endpoint>,
}

#[derive(Clone, Debug)]
struct Endpoint {
    method: String,
    procedure: ProcedureId,
    names: Vec<String>,
}

impl Router {
    /// Adds a route.
    pub(crate) fn add(&mut self, route: &Route, procedure: ProcedureId) -> Result<(), RouteError> {
        let path = route.pattern.strip_prefix('/').ok_or(RouteError::NoSlash)?;
        let mut segments: Vec<&str> = path.split('/').collect();
        if segments.len() > SEGMENTS_MAX {
            return Err(RouteError::TooLong);
        }
        if let Some(reserved) = RESERVED.into_iter().find(|r| segments.first() == Some(r)) {
            return Err(RouteError::Reserved(reserved));
        }
        let rest = segments.pop_if(|last| last.starts_with('*'));
        let mut node = &mut self.root;
        let mut names = Vec::new();
        for segment in segments {
            if let Some(name) = segment.strip_prefix(':') {
                names.push(checked_name(name)?);
                node = node.parameter.get_or_insert_default();
            } else if segment.starts_with('*') {
                return Err(RouteError::RestNotLast);
            } else {
                node = node.literal.entry(segment.into()).or_default();
            }
        }
        let endpoints = match rest {
            Some(rest) => {
                names.push(checked_name(&rest[1..])?);
                &mut node.rest
            }
            None => &mut node.here,
        };
        if let Some(first) = endpoints.iter().find(|e| e.method == route.method) {
            return Err(RouteError::Taken(first.procedure));
        }
        let endpoint = Endpoint { method: route.method.clone(), procedure, names };
        if endpoint.names.is_empty() && !path.contains('%') {
            self.whole.entry(path.into()).or_default().push(endpoint.clone());
        }
        endpoints.push(endpoint);
        Ok(())
    }

    /// Looks up a path as it stands in the request, without the query. `HEAD` finds what `GET`
    /// would, unless it has a route of its own.
    pub(crate) fn find<'r, 'p>(&'r self, method: &str, path: &'p str) -> Found<'r, 'p> {
        let Some(path) = path.strip_prefix('/') else { return Found::Nothing };
        let mut search = Search { method, matched: Vec::new(), others: Vec::new() };
        if let Some(endpoints) = self.whole.get(path)
            && let Some(endpoint) = choose(endpoints, &mut search)
        {
            return Found::Procedure(endpoint.procedure, Vec::new());
        }
        if memchr::memchr_iter(b'/', path.as_bytes()).count() >= SEGMENTS_MAX {
            return Found::Nothing;
        }
        // The tree finds them again.
        search.others.clear();
        let found = self.root.find(Some(path), &mut search);
        match found {
            Some(endpoint) => {
                let decoded = endpoint
                    .names
                    .iter()
                    .zip(search.matched)
                    .map(|(name, raw)| Some((name.as_str(), percent::decode_utf8(raw)?)));
                decoded.collect::<Option<_>>().map_or(Found::BadPath, |parameters| {
                    Found::Procedure(endpoint.procedure, parameters)
                })
            }
            None if search.others.is_empty() => Found::Nothing,
            None => Found::OtherMethods(allowed(search.others)),
        }
    }
}

fn checked_name(name: &str) -> Result<String, RouteError> {
    if name.is_empty() { Err(RouteError::NoName) } else { Ok(name.to_owned()) }
}

/// The methods for `Allow`: sorted, with the `HEAD` that comes with `GET`.
fn allowed(mut methods: Vec<&str>) -> Vec<&str> {
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.dedup();
    methods
}

struct Search<'r, 'p, 'm> {
    method: &'m str,
    /// What the parameters so far matched, still encoded.
    matched: Vec<&'p str>,
    /// Methods of routes that match except for the method.
    others: Vec<&'r str>,
}

impl Node {
    /// The endpoint for the rest of the path; `None` in `left` is its end.
    fn find<'r, 'p>(
        &'r self,
        left: Option<&'p str>,
        search: &mut Search<'r, 'p, '_>,
    ) -> Option<&'r Endpoint> {
        let Some(left) = left else { return choose(&self.here, search) };
        let (segment, behind) = match memchr::memchr(b'/', left.as_bytes()) {
            Some(slash) => (&left[..slash], Some(&left[slash + 1..])),
            None => (left, None),
        };
        if !self.literal.is_empty() {
            let decoded = percent::decode_utf8(segment);
            let next = decoded.and_then(|segment| self.literal.get(&*segment));
            if let Some(found) = next.and_then(|node| node.find(behind, search)) {
                return Some(found);
            }
        }
        if let Some(node) = self.parameter.as_ref().filter(|_| !segment.is_empty()) {
            search.matched.push(segment);
            if let Some(found) = node.find(behind, search) {
                return Some(found);
            }
            search.matched.pop();
        }
        let found = choose(&self.rest, search)?;
        search.matched.push(left);
        Some(found)
    }
}

fn choose<'r>(endpoints: &'r [Endpoint], search: &mut Search<'r, '_, '_>) -> Option<&'r Endpoint> {
    let by = |method: &str| endpoints.iter().find(|e| e.method == method);
    let found = by(search.method)
        .or_else(|| by("GET").filter(|_| search.method == "HEAD"))
        .or_else(|| by(Route::ANY_METHOD));
    if found.is_none() {
        search.others.extend(endpoints.iter().map(|e| e.method.as_str()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str) -> Route {
        let (method, pattern) = text.split_once(' ').expect("a method and a pattern");
        Route { method: method.to_owned(), pattern: pattern.to_owned() }
    }

    /// Shows which of the patterns answers, and with what.
    struct Table {
        patterns: Vec<&'static str>,
        router: Router,
    }

    impl Table {
        fn new(patterns: &[&'static str]) -> Self {
            let mut router = Router::default();
            for (place, pattern) in patterns.iter().enumerate() {
                router.add(&route(pattern), ProcedureId::from_index(place)).expect(pattern);
            }
            Self { patterns: patterns.to_vec(), router }
        }

        fn find(&self, request: &str) -> String {
            let (method, path) = request.split_once(' ').expect("a method and a path");
            match self.router.find(method, path) {
                Found::Procedure(id, parameters) => {
                    let given = parameters.iter().map(|(n, v)| format!(" {n}={v}"));
                    format!("{}{}", self.patterns[id.index()], given.collect::<String>())
                }
                Found::OtherMethods(methods) => format!("405 {}", methods.join(", ")),
                Found::Nothing => "404".to_owned(),
                Found::BadPath => "400".to_owned(),
            }
        }
    }

    #[test]
    fn literals_go_before_names_and_names_before_the_rest() {
        let table = Table::new(&[
            "GET /",
            "GET /hits/top",
            "GET /hits/:page",
            "POST /hits/:page",
            "GET /hits/:page/days/:day",
            "GET /files/*path",
            "GET /hits/*other",
            "PUT /hits/top",
            "GET /日本/:x",
        ]);
        let cases = [
            ("GET /", "GET /"),
            ("GET /hits/top", "GET /hits/top"),
            ("HEAD /hits/top", "GET /hits/top"),
            ("POST /hits/top", "POST /hits/:page page=top"),
            ("GET /hits/a%2Fb", "GET /hits/:page page=a/b"),
            ("GET /hits/t%6Fp", "GET /hits/top"),
            ("GET /hits/7/days/1", "GET /hits/:page/days/:day page=7 day=1"),
            ("GET /hits/7/weeks/1", "GET /hits/*other other=7/weeks/1"),
            ("GET /hits/", "GET /hits/*other other="),
            ("GET /hits", "404"),
            ("GET /files/a/b%20c", "GET /files/*path path=a/b c"),
            ("GET /%E6%97%A5%E6%9C%AC/1", "GET /日本/:x x=1"),
            ("DELETE /hits/top", "405 GET, HEAD, POST, PUT"),
            ("DELETE /files/x", "405 GET, HEAD"),
            ("GET /files/%FF", "400"),
            ("GET /nothing", "404"),
            ("GET *", "404"),
        ];
        for (request, answer) in cases {
            assert_eq!(table.find(request), answer, "{request}");
        }
        let deep = format!("GET /files{}", "/x".repeat(SEGMENTS_MAX));
        assert_eq!(table.find(&deep), "404");
    }

    #[test]
    fn routes_that_cannot_be_served_are_refused() {
        let id = ProcedureId::from_index(0);
        let mut router = Router::default();
        router.add(&route("GET /a/:x"), id).expect("the first of its kind");
        let cases = [
            ("GET a", RouteError::NoSlash),
            ("GET /:", RouteError::NoName),
            ("GET /*", RouteError::NoName),
            ("GET /*a/b", RouteError::RestNotLast),
            ("GET /v1/x", RouteError::Reserved("v1")),
            ("GET /metrics", RouteError::Reserved("metrics")),
            ("GET /a/:y", RouteError::Taken(id)),
        ];
        for (pattern, error) in cases {
            assert_eq!(router.add(&route(pattern), id), Err(error), "{pattern}");
        }
        assert_eq!(router.add(&route("POST /a/:y"), id), Ok(()));
    }
}
