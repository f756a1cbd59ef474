//! What user code finds: which functions there are, how files become procedures, and what happens to
//! undeclared variables.

/// A kind of Lua code. One is of Ruby: only what its files may say about themselves is here.
///
/// Every dialect is built on the core of the prelude: databases, transactions, values, errors, limits.
#[derive(Debug)]
pub struct Dialect {
    /// The name by which a file says that it is written in it.
    pub name: &'static str,
    /// The extension of its files. Files of the native dialect may have others, in other languages.
    pub extension: &'static str,
    /// The text of the Lua file that makes `core.loader`, which turns files into procedures.
    pub loader: &'static str,
    /// What it adds to the core and the loader, in order: the texts of Lua files. Each gets the
    /// prelude's table of parts.
    pub prelude: &'static [&'static str],
    /// How variables are treated that a file did not declare.
    pub globals: Globals,
    /// What the configuration may say about a file, and a file about itself.
    pub settings: &'static [Setting],
    /// Whether integers beyond 2^53 and nulls in tables have representations of their own.
    pub has_exact_values: bool,
}

/// There is no dialect of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect {name:?}; there are {}", names())]
pub struct UnknownDialect {
    /// The name.
    pub name: String,
}

fn names() -> String {
    let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name).collect();
    names.join(", ")
}

/// Something that may be said about a file.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as in the configuration, and before a colon at the beginning of the file.
    pub name: &'static str,
    /// Whether it names another file: by path in the configuration, and as for `require` in a file.
    pub is_file: bool,
    /// Whether it guards routes of other files, so that a file with it needs no route of its own.
    pub guards_other_files: bool,
}

impl Setting {
    const fn value(name: &'static str) -> Self {
        Self { name, is_file: false, guards_other_files: false }
    }

    const fn file(name: &'static str) -> Self {
        Self { name, is_file: true, guards_other_files: false }
    }

    const fn guard(name: &'static str) -> Self {
        Self { name, is_file: false, guards_other_files: true }
    }
}

/// What an assignment to an undeclared variable does. Each file has its own globals, except OpenResty's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Globals {
    /// It is an error, since it is an accident.
    Refused,
    /// It makes a global of the file.
    Allowed,
}

impl Dialect {
    /// The dialects that procedure files may be written in.
    pub const ALL: &'static [&'static Self] = &[
        &Self::NATIVE,
        &Self::KYOTO_TYCOON,
        &Self::TOKYO_TYRANT,
        &Self::OPENRESTY,
        &Self::MOD_LUA,
        &Self::MOD_MRUBY,
    ];

    /// The dialect of that name.
    ///
    /// # Errors
    /// If there is none; the message lists those that exist.
    pub fn find(name: &str) -> Result<&'static Self, UnknownDialect> {
        let found = Self::ALL.iter().find(|dialect| dialect.name == name);
        found.copied().ok_or_else(|| UnknownDialect { name: name.to_owned() })
    }

    /// The dialects of Lua.
    pub(crate) fn of_lua() -> impl Iterator<Item = &'static Self> {
        Self::ALL.iter().copied().filter(|dialect| dialect.extension == "lua")
    }

    /// How a procedure is declared as one that writes, for a message.
    pub(crate) fn how_to_write(&self) -> &'static str {
        if self.settings.iter().any(|setting| setting.name == "writes") {
            "say \"-- writes: true\" at the beginning of its file"
        } else {
            "declare it with tokaido.write"
        }
    }

    /// Tokaido's own, and the default for files that name no other. Files return tables of what `tokaido.read`, `tokaido.write` and
    /// `tokaido.http` made, and can require each other.
    pub const NATIVE: Self = Self {
        name: "tokaido",
        extension: "lua",
        loader: include_str!("../lua/loader.lua"),
        prelude: &[
            include_str!("../lua/procedure.lua"),
            include_str!("../lua/api.lua"),
            include_str!("../lua/script.lua"),
        ],
        globals: Globals::Refused,
        settings: &[],
        has_exact_values: true,
    };

    /// Kyoto Tycoon's. The global functions of a file are procedures, which get one map and fill another.
    pub const KYOTO_TYCOON: Self = Self {
        name: "kyototycoon",
        extension: "lua",
        loader: include_str!("../lua/cabinet/loader.lua"),
        prelude: &[
            include_str!("../lua/cabinet/texts.lua"),
            include_str!("../lua/cabinet/pack.lua"),
            include_str!("../lua/kyoto/errors.lua"),
            include_str!("../lua/kyoto/database.lua"),
            include_str!("../lua/kyoto/database.lua"),
            include_str!("../lua/cabinet/walk.lua"),
            include_str!("../lua/kyoto/visitors.lua"),
            include_str!("../lua/kyoto/cursor.lua"),
            include_str!("../lua/kyoto/transactions.lua"),
            include_str!("../lua/kyoto/databases.lua"),
            include_str!("../lua/kyoto/functions.lua"),
            include_str!("../lua/kyoto/module.lua"),
        ],
        globals: Globals::Allowed,
        settings: &[],
        has_exact_values: false,
    };

    /// OpenResty's. A file answers the requests of a route, with what it finds in `ngx`. Its files share
    /// their globals.
    pub const OPENRESTY: Self = Self {
        name: "ngx",
        extension: "lua",
        loader: include_str!("../lua/ngx/loader.lua"),
        prelude: &[
            include_str!("../lua/ngx/api.lua"),
            include_str!("../lua/ngx/request.lua"),
            include_str!("../lua/ngx/coroutines.lua"),
            include_str!("../lua/ngx/output.lua"),
            include_str!("../lua/ngx/arguments.lua"),
            include_str!("../lua/ngx/req.lua"),
            include_str!("../lua/ngx/variables.lua"),
            include_str!("../lua/ngx/routes.lua"),
            include_str!("../lua/ngx/process.lua"),
            include_str!("../lua/ngx/regex.lua"),
            include_str!("../lua/ngx/re.lua"),
            include_str!("../lua/ngx/re_replace.lua"),
            include_str!("../lua/ngx/codecs.lua"),
            include_str!("../lua/ngx/time.lua"),
            include_str!("../lua/ngx/shared.lua"),
            include_str!("../lua/ngx/re_module.lua"),
            include_str!("../lua/ngx/modules.lua"),
            include_str!("../lua/cjson.lua"),
            include_str!("../lua/ngx/cjson.lua"),
            include_str!("../lua/ngx/lrucache.lua"),
            include_str!("../lua/ngx/script.lua"),
            include_str!("../lua/ngx/threads.lua"),
            include_str!("../lua/ngx/sockets.lua"),
            include_str!("../lua/ngx/datagrams.lua"),
            include_str!("../lua/ngx/semaphore.lua"),
            include_str!("../lua/ngx/timer.lua"),
        ],
        globals: Globals::Allowed,
        settings: &[
            Setting::value("route"),
            Setting::value("phase"),
            Setting::value("writes"),
            Setting::file("rewrite"),
            Setting::file("access"),
            Setting::file("header_filter"),
            Setting::file("body_filter"),
            Setting::file("log"),
        ],
        has_exact_values: false,
    };

    /// Tokyo Tyrant's. The global functions of a file are procedures, which get a key and a value.
    pub const TOKYO_TYRANT: Self = Self {
        name: "tokyotyrant",
        extension: "lua",
        loader: include_str!("../lua/cabinet/loader.lua"),
        prelude: &[
            include_str!("../lua/cabinet/texts.lua"),
            include_str!("../lua/cabinet/pack.lua"),
            include_str!("../lua/tyrant/errors.lua"),
            include_str!("../lua/cabinet/walk.lua"),
            include_str!("../lua/tyrant/records.lua"),
            include_str!("../lua/tyrant/records.lua"),
            include_str!("../lua/tyrant/walks.lua"),
            include_str!("../lua/tyrant/stash.lua"),
            include_str!("../lua/tyrant/functions.lua"),
            include_str!("../lua/tyrant/calls.lua"),
        ],
        globals: Globals::Allowed,
        settings: &[],
        has_exact_values: false,
    };

    /// Apache mod_lua's. The function `handle` of a file answers the requests of a route. Each file has
    /// its own globals.
    pub const MOD_LUA: Self = Self {
        name: "mod_lua",
        extension: "lua",
        loader: include_str!("../lua/apache/loader.lua"),
        prelude: &[
            include_str!("../lua/apache/tables.lua"),
            include_str!("../lua/apache/request.lua"),
            include_str!("../lua/apache/output.lua"),
            include_str!("../lua/ngx/regex.lua"),
            include_str!("../lua/apache/texts.lua"),
            include_str!("../lua/apache/input.lua"),
            include_str!("../lua/apache/server.lua"),
            include_str!("../lua/apache/refusals.lua"),
            include_str!("../lua/apache/phases.lua"),
            include_str!("../lua/procedure.lua"),
            include_str!("../lua/api.lua"),
            include_str!("../lua/apache/module.lua"),
        ],
        globals: Globals::Allowed,
        settings: &[
            Setting::value("route"),
            Setting::value("function"),
            Setting::value("writes"),
            Setting::value("quick_handler"),
            Setting::value("translate_name"),
            Setting::guard("access_checker"),
            Setting::value("type_checker"),
            Setting::value("fixups"),
            Setting::value("insert_filter"),
            Setting::value("log"),
            Setting::value("input_filter"),
            Setting::value("output_filter"),
        ],
        has_exact_values: false,
    };

    /// Apache mod_mruby's. A file of Ruby is run for each request, or in a phase of each. What it finds is in that
    /// language's crate.
    pub const MOD_MRUBY: Self = Self {
        name: "mod_mruby",
        extension: "rb",
        loader: "",
        prelude: &[],
        globals: Globals::Allowed,
        settings: &[
            Setting::value("route"),
            Setting::guard("phase"),
            Setting::value("location"),
            Setting::value("realm"),
            Setting::value("writes"),
        ],
        has_exact_values: true,
    };

    /// Redis's, for scripts that clients send: see [`RedisVm`](crate::RedisVm).
    pub(crate) const REDIS: Self = Self {
        name: "redis",
        extension: "lua",
        loader: include_str!("../lua/redis/environment.lua"),
        prelude: &[
            include_str!("../lua/redis/call.lua"),
            include_str!("../lua/cjson.lua"),
            include_str!("../lua/redis/libraries.lua"),
            include_str!("../lua/redis/errors.lua"),
        ],
        globals: Globals::Refused,
        settings: &[],
        has_exact_values: false,
    };

    /// The same for libraries of functions: see [`FunctionVm`](crate::FunctionVm).
    pub(crate) const REDIS_FUNCTIONS: Self = Self {
        prelude: &[
            include_str!("../lua/redis/call.lua"),
            include_str!("../lua/cjson.lua"),
            include_str!("../lua/redis/libraries.lua"),
            include_str!("../lua/redis/errors.lua"),
            include_str!("../lua/redis/functions.lua"),
        ],
        ..Self::REDIS
    };
}
