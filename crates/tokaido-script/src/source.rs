//! Procedure files.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{SourceLimits, limits::SOURCE_DEPTH_MAX};

/// One file of Lua source.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name that `require` knows it by, and the first part of its procedures' names:
    /// `shop/cart.lua` is `shop.cart`.
    pub module: String,
    /// Where it was read from; errors name it.
    pub path: PathBuf,
    /// The text.
    pub text: Arc<[u8]>,
}

/// All files that a VM loads, sorted by module.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Reads every `*.lua` below `directory`, except hidden ones.
    ///
    /// # Errors
    /// If the directory or one of its files cannot be read, has a name that `require` could not
    /// say, or is over one of the limits. The message names the file.
    pub fn read(directory: &Path, limits: SourceLimits) -> io::Result<Self> {
        let mut reading = Reading { sources: Self::default(), limits };
        reading.read_folder(directory, "", 0)?;
        Ok(reading.sources)
    }

    /// Adds one file, in place of another of the same module.
    pub fn add(&mut self, source: Source) {
        match self.files.binary_search_by(|other| other.module.cmp(&source.module)) {
            Ok(place) => self.files[place] = source,
            Err(place) => self.files.insert(place, source),
        }
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[Source] {
        &self.files
    }
}

/// A directory that is being read.
struct Reading {
    sources: Sources,
    limits: SourceLimits,
}

impl Reading {
    fn read_folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        if depth > SOURCE_DEPTH_MAX {
            return Err(refused(folder, &format!("is more than {SOURCE_DEPTH_MAX} folders deep")));
        }
        let mut entries: Vec<PathBuf> = fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(|error| at(folder, &error))?;
        entries.sort();
        for path in entries {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            let is_lua = path.extension().is_some_and(|extension| extension == "lua");
            if hidden {
                continue;
            }
            // Follows symbolic links; one that leads nowhere matters only if it would be read.
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if is_lua => return Err(at(&path, &error)),
                Err(_) => continue,
            };
            if metadata.is_dir() {
                if let Some(name) = name_part(path.file_name()) {
                    self.read_folder(&path, &format!("{prefix}{name}."), depth + 1)?;
                }
            } else if is_lua {
                self.read_file(&path, prefix, &metadata)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, prefix: &str, metadata: &fs::Metadata) -> io::Result<()> {
        let name = name_part(path.file_stem()).ok_or_else(|| {
            refused(path, "needs a name of a-z A-Z 0-9 _ - only, so that require can say it")
        })?;
        let SourceLimits { files_max, len_max } = self.limits;
        if metadata.len() > len_max {
            return Err(refused(path, &format!("is longer than {len_max} bytes")));
        }
        if self.sources.files.len() == files_max {
            return Err(refused(path, &format!("is one too many; {files_max} may be loaded")));
        }
        let text = fs::read(path).map_err(|error| at(path, &error))?;
        self.sources.add(Source {
            module: format!("{prefix}{name}"),
            path: path.to_owned(),
            text: text.into(),
        });
        Ok(())
    }
}

fn name_part(name: Option<&std::ffi::OsStr>) -> Option<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    name?.to_str().filter(|name| !name.is_empty() && name.bytes().all(plain))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

/// Why a file is not in service. The others are.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{}: {message}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// The line, where Lua names one.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

impl LoadError {
    /// Takes the file and line off the front of a message of Lua's.
    pub(crate) fn of_message(source: &Source, message: &str) -> Self {
        let (mut line, mut rest) = (None, message);
        if let Some(place) = message.find(".lua:") {
            let after = &message[place + ".lua:".len()..];
            let own = message[..place + ".lua".len()].trim_start_matches("...");
            if source.path.display().to_string().ends_with(own)
                && let Some((number, text)) = after.split_once(": ")
                && let Ok(number) = number.parse()
            {
                (line, rest) = (Some(number), text);
            }
        }
        Self { path: source.path.clone(), line, message: rest.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_directory_are_found_sorted_and_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("shop/old")).unwrap();
        for file in ["z.lua", "shop/cart.lua", "shop/old/a.lua", "notes.txt", ".#z.lua"] {
            fs::write(directory.path().join(file), "return {}").unwrap();
        }
        std::os::unix::fs::symlink(directory.path().join("z.lua"), directory.path().join("y.lua"))
            .unwrap();
        let sources = Sources::read(directory.path(), SourceLimits::default()).unwrap();
        let modules: Vec<_> = sources.files().iter().map(|file| file.module.as_str()).collect();
        assert_eq!(modules, ["shop.cart", "shop.old.a", "y", "z"]);
    }

    #[test]
    fn what_is_over_a_limit_is_refused_by_name() {
        let message = |make: &dyn Fn(&Path)| {
            let directory = tempfile::tempdir().unwrap();
            make(directory.path());
            let limits = SourceLimits { files_max: 2, len_max: 100 };
            Sources::read(directory.path(), limits).unwrap_err().to_string()
        };
        let long = message(&|directory| {
            fs::write(directory.join("long.lua"), vec![b' '; 101]).unwrap();
        });
        assert!(long.contains("long.lua is longer than 100 bytes"), "{long}");
        let many = message(&|directory| {
            for name in ["a.lua", "b.lua", "c.lua"] {
                fs::write(directory.join(name), "").unwrap();
            }
        });
        assert!(many.contains("c.lua is one too many; 2 may be loaded"), "{many}");
        let unnamable = message(&|directory| fs::write(directory.join("a b.lua"), "").unwrap());
        assert!(unnamable.contains("a b.lua needs a name"), "{unnamable}");
        let circle = message(&|directory| {
            std::os::unix::fs::symlink(directory, directory.join("again")).unwrap();
        });
        assert!(circle.contains("folders deep"), "{circle}");
        let nowhere = message(&|directory| {
            std::os::unix::fs::symlink("nowhere", directory.join("gone.lua")).unwrap();
        });
        assert!(nowhere.contains("gone.lua"), "{nowhere}");
        let absent = Sources::read(Path::new("/nonexistent/procedures"), SourceLimits::default());
        let absent = absent.unwrap_err();
        assert!(absent.to_string().contains("/nonexistent/procedures"), "{absent}");
    }

    #[test]
    fn a_later_source_takes_the_place_of_an_earlier_one() {
        let mut sources = Sources::default();
        for text in ["one", "two"] {
            let text = text.as_bytes().into();
            sources.add(Source { module: "m".to_owned(), path: "m.lua".into(), text });
        }
        assert_eq!(sources.files().len(), 1);
        assert_eq!(&*sources.files()[0].text, b"two");
    }
}
