//! `docs/lua-api.md`, from the editor annotations of the Lua API.

use crate::{failure::Outcome, files, markdown};

/// The annotations.
const SOURCES: [&str; 2] = [
    "crates/tokaido-script/lua/types/tokaido.lua",
    "crates/tokaido-script/lua/types/collections.lua",
];

const INTRODUCTION: &str = "\
# The Lua API

Every function and field that [procedures](procedures.md) and scripts have;
[lua.md](lua.md) tells how they are used. What stands in brackets may be left out.

This page is made from the annotations for editors, the files of `crates/tokaido-script/lua/types`, by
`cargo xtask docs`.
";

/// The end of the page. A test in the script crate checks the table against the VM.
const LUA_ITSELF: &str = "
## Of Lua itself

The functions of Lua 5.1 and LuaJIT, less those that reach out of a procedure. `collectgarbage` only counts, `load` and
`loadstring` take source text, `print` writes to the log, or in scripts to standard output. `require` finds the procedure
files and the modules `tokaido`, `tokaido.json` and `bit`.

| library | |
|---|---|
|  | `_VERSION` `assert` `collectgarbage` `error` `getmetatable` `ipairs` `load` `loadstring` `next` `pairs` `pcall` `print` `rawequal` `rawget` `rawset` `require` `select` `setmetatable` `tonumber` `tostring` `type` `unpack` `xpcall` |
| `bit` | `arshift` `band` `bnot` `bor` `bswap` `bxor` `lshift` `rol` `ror` `rshift` `tobit` `tohex` |
| `coroutine` | `create` `isyieldable` `resume` `running` `status` `wrap` `yield` |
| `math` | `abs` `acos` `asin` `atan` `atan2` `ceil` `cos` `cosh` `deg` `exp` `floor` `fmod` `frexp` `huge` `ldexp` `log` `log10` `max` `min` `modf` `pi` `pow` `rad` `random` `randomseed` `sin` `sinh` `sqrt` `tan` `tanh` |
| `os` | `clock` `date` `difftime` `time` |
| `string` | `byte` `char` `find` `format` `gmatch` `gsub` `len` `lower` `match` `rep` `reverse` `sub` `upper` |
| `table` | `concat` `foreach` `foreachi` `getn` `insert` `maxn` `move` `remove` `sort` |
";

/// The variable name that examples use for each class.
const NAMES: [(&str, &str); 10] = [
    ("Transaction", "tx"),
    ("Database", "db"),
    ("Hash", "hash"),
    ("List", "list"),
    ("Set", "set"),
    ("SortedSet", "sorted_set"),
    ("Stream", "stream"),
    ("StreamGroup", "group"),
    ("Request", "req"),
    ("Response", "res"),
];

/// The page, generated from the annotations.
pub(super) fn page() -> Outcome<String> {
    Ok(page_of(&source()?))
}

/// All annotations.
fn source() -> Outcome<String> {
    Ok(SOURCES.into_iter().map(files::read).collect::<Outcome<Vec<_>>>()?.join("\n"))
}

fn page_of(source: &str) -> String {
    let mut page = INTRODUCTION.to_owned();
    for block in source.split("\n\n") {
        page.push_str(&Block::read(block).markdown());
    }
    page + LUA_ITSELF
}

/// A name with its type and description.
#[derive(Debug, Default, PartialEq, Eq)]
struct Item<'s> {
    name: &'s str,
    kind: &'s str,
    text: &'s str,
}

impl<'s> Item<'s> {
    /// Reads `name type text`.
    fn of_name(line: &'s str) -> Self {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (kind, text) = split_type(rest);
        Self { name, kind, text }
    }

    /// Reads `type name text`.
    fn of_type(line: &'s str) -> Self {
        let (kind, rest) = split_type(line);
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        Self { name, kind, text }
    }

    fn is_optional(&self) -> bool {
        self.kind.ends_with('?')
    }
}

/// The text between two empty lines: a class, an alias or a function.
#[derive(Debug, Default)]
struct Block<'s> {
    text: Vec<&'s str>,
    /// The class or alias that is declared.
    declared: Option<&'s str>,
    /// What an alias stands for.
    alias: &'s str,
    fields: Vec<Item<'s>>,
    parameters: Vec<Item<'s>>,
    results: Vec<Item<'s>>,
    /// Names of type parameters, and what they stand for.
    generics: Vec<(&'s str, &'s str)>,
    /// `Class:method(a, b)`.
    function: Option<&'s str>,
}

impl<'s> Block<'s> {
    fn read(source: &'s str) -> Self {
        let mut block = Self::default();
        for line in source.lines() {
            if let Some(function) = line.strip_prefix("function ") {
                block.function = function.strip_suffix(" end");
            }
            let Some(comment) = line.strip_prefix("---") else { continue };
            let Some(tag) = comment.strip_prefix('@') else {
                block.text.push(comment);
                continue;
            };
            let (tag, rest) = tag.split_once(' ').unwrap_or((tag, ""));
            match tag {
                "class" => block.declared = Some(rest),
                "alias" => {
                    let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
                    (block.declared, block.alias) = (Some(name), kind);
                }
                "field" => block.fields.push(Item::of_name(rest)),
                "param" => block.parameters.push(Item::of_name(rest)),
                "return" => block.results.push(Item::of_type(rest)),
                "generic" => {
                    let (name, bound) = rest.split_once(": ").unwrap_or((rest, "any"));
                    block.generics.push((name, bound));
                }
                _ => {}
            }
        }
        block
    }

    fn markdown(&self) -> String {
        match (self.function, self.declared) {
            (Some(function), _) => self.function_markdown(function),
            (None, Some(name)) => self.type_markdown(name),
            (None, None) => String::new(),
        }
    }

    fn type_markdown(&self, name: &str) -> String {
        let class = name.rsplit('.').next().unwrap_or(name);
        let example = NAMES.iter().find(|(known, _)| *known == class);
        let called = example.map_or_else(String::new, |(_, example)| format!(": `{example}`"));
        let mut section = format!("\n## `{name}`{called}\n");
        section.push_str(&self.paragraph());
        if !self.alias.is_empty() {
            section.push_str(&format!("\nIt is `{}`.\n", self.alias));
        }
        if !self.fields.is_empty() {
            let row = |field: &Item<'_>| {
                let kind = format!("`{}`", field.kind.replace('|', "\\|"));
                vec![format!("`{}`", field.name), kind, field.text.to_owned()]
            };
            let rows: Vec<Vec<String>> = self.fields.iter().map(row).collect();
            section.push('\n');
            section.push_str(&markdown::table(&["field", "type", "what"], &rows));
        }
        section
    }

    fn function_markdown(&self, function: &str) -> String {
        let mut section = format!("\n### `{}`\n", self.signature(function));
        section.push_str(&self.paragraph());
        let mut list = String::new();
        for Item { name, kind, text } in &self.parameters {
            let name = if *name == "..." { "…" } else { name };
            let text = if text.is_empty() { String::new() } else { format!(": {text}") };
            list.push_str(&format!("- `{name}`, {}{text}\n", self.typed(kind)));
        }
        for (index, Item { name, kind, .. }) in self.results.iter().enumerate() {
            let verb = if index == 0 { "Gives" } else { "and" };
            let name = if name.is_empty() { String::new() } else { format!(", the {name}") };
            list.push_str(&format!("- {verb} {}{name}\n", self.typed(kind)));
        }
        if !list.is_empty() {
            section.push('\n');
            section.push_str(&list);
        }
        section
    }

    fn paragraph(&self) -> String {
        match self.text.is_empty() {
            true => String::new(),
            false => format!("\n{}\n", self.text.join("\n")),
        }
    }

    /// How it is called: `db:put(key, value[, options])`.
    fn signature(&self, function: &str) -> String {
        let (path, _) = function.split_once('(').unwrap_or((function, ""));
        let class = path.split([':', '.']).next().unwrap_or(path);
        let example = NAMES.iter().find(|(known, _)| *known == class);
        let path = match example {
            Some((_, example)) => format!("{example}{}", &path[class.len()..]),
            None => path.to_owned(),
        };
        let mut arguments = String::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let name = if parameter.name == "..." { "…" } else { parameter.name };
            // One that may be nil can be left out only if all after it can.
            let may_end = self.parameters[index..].iter().all(Item::is_optional);
            arguments.push_str(&match may_end {
                true => format!("[{comma}{name}]"),
                false => format!("{comma}{name}"),
            });
        }
        format!("{path}({arguments})")
    }

    /// A type as the page shows it: with generics replaced by what they stand for, and `?` as nil.
    fn typed(&self, kind: &str) -> String {
        let (plain, end) = match kind.strip_suffix('?') {
            Some(plain) => (plain, " or nil"),
            None => (kind, ""),
        };
        let plain = plain.strip_prefix('(').and_then(|p| p.strip_suffix(')')).unwrap_or(plain);
        let mut plain = plain.to_owned();
        for (name, bound) in &self.generics {
            plain = replace_word(&plain, name, bound);
        }
        format!("`{plain}`{end}")
    }
}

/// Splits a type from the text after it, at the first blank that is outside brackets and does not
/// follow a colon or comma.
fn split_type(line: &str) -> (&str, &str) {
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ' ' if depth == 0 && !matches!(before, ':' | ',') => {
                return (&line[..at], &line[at + 1..]);
            }
            _ => {}
        }
        before = c;
    }
    (line, "")
}

/// Replaces a name where it is a whole word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let is_word = !is_part(before.chars().next_back()) && !is_part(behind.chars().next());
        replaced.push_str(before);
        replaced.push_str(if is_word { by } else { word });
        rest = behind;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_its_arguments_and_results() {
        let source = "---Puts `value` if the record's value is `expected`.\n\
            ---@generic K: tokaido.Bytes\n\
            ---@param keys K[]\n\
            ---@param expected tokaido.Bytes? nil: there is none\n\
            ---@param range (tokaido.Range|string)?\n\
            ---@return fun(state: any, key: string?): string?, string?\n\
            ---@return string? message\n\
            function Database:try(keys, expected, range) end";
        assert_eq!(
            Block::read(source).markdown(),
            "\n### `db:try(keys[, expected][, range])`\n\n\
             Puts `value` if the record's value is `expected`.\n\n\
             - `keys`, `tokaido.Bytes[]`\n\
             - `expected`, `tokaido.Bytes` or nil: nil: there is none\n\
             - `range`, `tokaido.Range|string` or nil\n\
             - Gives `fun(state: any, key: string?): string?, string` or nil\n\
             - and `string` or nil, the message\n"
        );
    }

    #[test]
    fn a_class_has_its_fields() {
        let source = "---A record.\n---@class tokaido.Database\n\
            ---@field [string] tokaido.Bytes|number any\nlocal Database = {}";
        assert_eq!(
            Block::read(source).markdown(),
            "\n## `tokaido.Database`: `db`\n\nA record.\n\n| field | type | what |\n|---|---|---|\n\
             | `[string]` | `tokaido.Bytes\\|number` | any |\n"
        );
    }

    #[test]
    fn every_function_of_the_annotations_is_on_the_page() {
        let source = source().unwrap();
        let page = page_of(&source);
        let functions: Vec<&str> =
            source.lines().filter_map(|line| line.strip_prefix("function ")).collect();
        assert!(functions.len() > 40, "{functions:?}");
        for function in functions {
            let path = function.split('(').next().unwrap();
            let (class, name) = path.split_once([':', '.']).unwrap();
            let example = NAMES.iter().find(|(known, _)| *known == class);
            let heading = match example {
                Some((_, example)) => format!("\n### `{example}:{name}("),
                None => format!("\n### `{class}.{name}("),
            };
            assert_eq!(page.matches(&heading).count(), 1, "{heading}");
        }
        for class in source.lines().filter_map(|line| line.strip_prefix("---@class ")) {
            assert!(page.contains(&format!("\n## `{class}`")), "{class}");
        }
    }
}
