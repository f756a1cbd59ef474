//! What a mod_mruby script declares: the phase in which it runs, and for which requests.

use tokaido_script::{Dialect, Route, Source, Value};

/// The phases other than the handler. In Apache the names of directives are derived from them.
const PHASES: [&str; 10] = [
    "post_read_request",
    "translate_name",
    "access_checker",
    "check_user_id",
    "authn_check_password",
    "auth_checker",
    "fixups",
    "output_filter",
    "log_transaction",
    "child_init",
];
const HANDLER: &str = "handler";

/// The declarations of a file, in the form that `ModMruby::Script` takes.
pub(crate) fn declared(source: &Source) -> Result<Value, String> {
    let mut settings = Settings::default();
    for (name, value) in source.all_settings(Dialect::MOD_MRUBY.settings)? {
        let place = match name {
            "route" => &mut settings.route,
            "phase" => &mut settings.phase,
            "location" => &mut settings.location,
            "realm" => &mut settings.realm,
            _ => &mut settings.writes,
        };
        *place = Some(value);
    }
    settings.check()?;
    let (method, pattern) = match settings.route {
        None => (Route::ANY_METHOD, format!("/{}.rb", source.module.replace('.', "/"))),
        Some(route) => match route.split_once(' ') {
            None => (Route::ANY_METHOD, route.to_owned()),
            Some((method, pattern)) => (method, pattern.trim().to_owned()),
        },
    };
    let texts = [
        ("phase", settings.phase),
        ("location", settings.location),
        ("realm", settings.realm),
        ("writes", settings.writes),
        ("method", Some(method)),
        ("pattern", Some(&*pattern)),
    ];
    let text = |text: &str| Value::String(text.as_bytes().to_vec());
    let given = texts.into_iter().filter_map(|(name, value)| Some((text(name), text(value?))));
    Ok(Value::Map(given.collect()))
}

#[derive(Default)]
struct Settings<'s> {
    route: Option<&'s str>,
    phase: Option<&'s str>,
    location: Option<&'s str>,
    realm: Option<&'s str>,
    writes: Option<&'s str>,
}

impl Settings<'_> {
    /// Rejects settings that have no effect: a guard with a misplaced setting would guard nothing.
    fn check(&self) -> Result<(), String> {
        let phase = self.phase.unwrap_or(HANDLER);
        if phase != HANDLER && !PHASES.contains(&phase) {
            let known = PHASES.join(", ");
            return Err(format!("there is no phase {phase:?}; there are {HANDLER}, {known}"));
        }
        let only_for = |is_given: bool, is_right: bool, what: &str| {
            let refused = || Err(format!("{what}, and its phase is {phase}"));
            if is_given && !is_right { refused() } else { Ok(()) }
        };
        let is_handler = phase == HANDLER;
        only_for(
            self.route.is_some(),
            is_handler,
            "a route is for a handler; say where as location",
        )?;
        only_for(self.writes.is_some(), is_handler, "a handler says whether a request writes")?;
        let has_location = !is_handler && phase != "child_init";
        only_for(self.location.is_some(), has_location, "a location is for a phase of requests")?;
        let asks = phase == "authn_check_password";
        only_for(self.realm.is_some(), asks, "a realm is for authn_check_password")?;
        if let Some(location) = self.location.filter(|location| !location.starts_with('/')) {
            return Err(format!("its location {location:?} is no path, as /admin"));
        }
        if let Some(writes) = self.writes.filter(|writes| !["true", "false"].contains(writes)) {
            return Err(format!("writes is true or false, and not {writes:?}"));
        }
        let is_route = |route: &str| {
            let method_and_path = route.split_once(' ').map(|(method, path)| (method, path.trim()));
            let (method, path) = method_and_path.unwrap_or(("GET", route));
            path.starts_with('/') && method.bytes().all(|byte| byte.is_ascii_uppercase())
        };
        match self.route.filter(|route| !is_route(route)) {
            Some(route) => Err(format!(
                "its route {route:?} is neither a path nor a method and a path, as in GET /hello"
            )),
            None => Ok(()),
        }
    }
}
