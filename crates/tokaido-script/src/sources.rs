//! Where procedure files are, and all those that a VM loads.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{Source, SourceLimits, limits::SOURCE_DEPTH_MAX};

/// A procedure file that the configuration names individually.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// Where it is.
    pub path: PathBuf,
    /// The dialect that it is written in, if it does not say so itself.
    pub dialect: Option<String>,
    /// What else is said about it, for its dialect.
    pub settings: Vec<(String, String)>,
}

/// Where the procedure files are.
#[derive(Clone, Debug, Default)]
pub struct SourcePlaces {
    /// A directory of files.
    pub directory: Option<PathBuf>,
    /// Single files.
    pub scripts: Vec<ScriptFile>,
}

impl SourcePlaces {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.directory.is_none() && self.scripts.is_empty()
    }
}

/// All files that a VM loads, sorted by module.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Reads every file with one of the extensions: those below a directory, except hidden ones, and
    /// single ones.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_places(
        places: &SourcePlaces,
        extensions: &[&str],
        limits: SourceLimits,
    ) -> io::Result<Self> {
        let mut sources = match &places.directory {
            Some(directory) => Self::read(directory, extensions, limits)?,
            None => Self::default(),
        };
        for script in &places.scripts {
            let path = &script.path;
            if !has_extension(path, extensions) {
                return Err(refused(
                    path,
                    &format!("needs a name that ends in .{}", extensions.join(" or .")),
                ));
            }
            let metadata = fs::metadata(path).map_err(|error| at(path, &error))?;
            sources.read_file(path, "", Some(script), &metadata, limits)?;
        }
        Ok(sources)
    }

    /// Reads every file below `directory` with one of the extensions, except hidden ones.
    ///
    /// # Errors
    /// If the directory or one of its files cannot be read or is over one of the limits, or if a file
    /// has a name that `require` could not say or that another file has in another language. The
    /// message names the file.
    pub fn read(directory: &Path, extensions: &[&str], limits: SourceLimits) -> io::Result<Self> {
        let mut sources = Self::default();
        let read = &mut |path: &Path, prefix: &str, metadata: &fs::Metadata| {
            sources.read_file(path, prefix, None, metadata, limits)
        };
        Walk { extensions, visit: read }.folder(directory, "", 0)?;
        Ok(sources)
    }

    /// A number that changes once any of the files that [`read_places`](Self::read_places) would read is
    /// changed, added or removed. Reads none of them.
    ///
    /// # Errors
    /// As [`read`](Self::read), except for errors within the files.
    pub fn fingerprint(places: &SourcePlaces, extensions: &[&str]) -> io::Result<u64> {
        let mut hasher = DefaultHasher::new();
        let note = &mut |path: &Path, _: &str, metadata: &fs::Metadata| {
            // The time of the last status change reveals another file under the same name, too.
            let times = [metadata.mtime(), metadata.mtime_nsec()];
            let changes = [metadata.ctime(), metadata.ctime_nsec()];
            (path, metadata.ino(), metadata.len(), times, changes).hash(&mut hasher);
            Ok(())
        };
        for script in &places.scripts {
            let metadata = fs::metadata(&script.path).map_err(|error| at(&script.path, &error))?;
            note(&script.path, "", &metadata)?;
        }
        if let Some(directory) = &places.directory {
            Walk { extensions, visit: note }.folder(directory, "", 0)?;
        }
        Ok(hasher.finish())
    }

    /// Whether both have the same files with the same text.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        let same = |a: &Source, b: &Source| {
            (&a.path, &a.text, &a.dialect, &a.settings)
                == (&b.path, &b.text, &b.dialect, &b.settings)
        };
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|(a, b)| same(a, b))
    }

    /// Adds one file, replacing another of the same module.
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

    /// The files with that extension.
    pub fn of(&self, extension: &str) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(move |file| has_extension(&file.path, &[extension]))
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

/// Called for each procedure file with its path, the prefix of its module's name, and its metadata.
type Visit<'v> = dyn FnMut(&Path, &str, &fs::Metadata) -> io::Result<()> + 'v;

/// Walks over the procedure files of a directory.
struct Walk<'w> {
    extensions: &'w [&'w str],
    visit: &'w mut Visit<'w>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        if depth > SOURCE_DEPTH_MAX {
            return Err(refused(folder, &format!("is more than {SOURCE_DEPTH_MAX} folders deep")));
        }
        let mut entries: Vec<PathBuf> = fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(|error| at(folder, &error))?;
        entries.sort();
        for path in entries {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            let is_source = has_extension(&path, self.extensions);
            if hidden {
                continue;
            }
            // Follows symbolic links; a broken one matters only if it would be read.
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if is_source => return Err(at(&path, &error)),
                Err(_) => continue,
            };
            if metadata.is_dir() {
                if let Some(name) = name_part(path.file_name()) {
                    self.folder(&path, &format!("{prefix}{name}."), depth + 1)?;
                }
            } else if is_source {
                (self.visit)(&path, prefix, &metadata)?;
            }
        }
        Ok(())
    }
}

impl Sources {
    fn read_file(
        &mut self,
        path: &Path,
        prefix: &str,
        script: Option<&ScriptFile>,
        metadata: &fs::Metadata,
        limits: SourceLimits,
    ) -> io::Result<()> {
        let name = name_part(path.file_stem()).ok_or_else(|| {
            refused(path, "needs a name of a-z A-Z 0-9 _ - only, so that require can say it")
        })?;
        let SourceLimits { files_max, len_max } = limits;
        if metadata.len() > len_max {
            return Err(refused(path, &format!("is longer than {len_max} bytes")));
        }
        if self.files.len() == files_max {
            return Err(refused(path, &format!("is one too many; {files_max} may be loaded")));
        }
        let module = format!("{prefix}{name}");
        if let Some(other) = self.files.iter().find(|other| other.module == module) {
            let other = other.path.display();
            return Err(refused(
                path,
                &format!("has the same name as {other}; rename one of them"),
            ));
        }
        let text = fs::read(path).map_err(|error| at(path, &error))?;
        let (dialect, settings) = match script {
            Some(script) => (script.dialect.clone(), script.settings.clone()),
            None => (None, Vec::new()),
        };
        self.add(Source { module, path: path.to_owned(), text: text.into(), dialect, settings });
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
        let sources = Sources::read(directory.path(), &["lua"], SourceLimits::default()).unwrap();
        let modules: Vec<_> = sources.files().iter().map(|file| file.module.as_str()).collect();
        assert_eq!(modules, ["shop.cart", "shop.old.a", "y", "z"]);
    }

    #[test]
    fn what_is_over_a_limit_is_refused_by_name() {
        let message = |make: &dyn Fn(&Path)| {
            let directory = tempfile::tempdir().unwrap();
            make(directory.path());
            let limits = SourceLimits { files_max: 2, len_max: 100 };
            Sources::read(directory.path(), &["lua", "rb"], limits).unwrap_err().to_string()
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
        let twice = message(&|directory| {
            fs::write(directory.join("a.lua"), "").unwrap();
            fs::write(directory.join("a.rb"), "").unwrap();
        });
        assert!(twice.contains("a.rb has the same name as"), "{twice}");
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
        let absent =
            Sources::read(Path::new("/nonexistent/procedures"), &["lua"], SourceLimits::default());
        let absent = absent.unwrap_err();
        assert!(absent.to_string().contains("/nonexistent/procedures"), "{absent}");
    }

    #[test]
    fn the_fingerprint_is_another_one_after_each_change_and_no_other_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let script = directory.path().join("script.txt");
        fs::write(&script, "").unwrap();
        let scripts = vec![ScriptFile { path: script, dialect: None, settings: Vec::new() }];
        let places = SourcePlaces { directory: Some(directory.path().to_owned()), scripts };
        let seen = || Sources::fingerprint(&places, &["lua"]).unwrap();
        let mut before = seen();
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(path("script.txt"), "--").unwrap(),
            &|| fs::write(path("a.lua"), "return {}").unwrap(),
            &|| fs::write(path("b.lua"), "return {}").unwrap(),
            &|| fs::write(path("a.lua"), "return {} ").unwrap(),
            &|| fs::rename(path("b.lua"), path("a.lua")).unwrap(),
            &|| fs::remove_file(path("a.lua")).unwrap(),
        ];
        for (number, change) in changes.iter().enumerate() {
            change();
            assert_ne!(seen(), before, "change {number}");
            before = seen();
            fs::write(path("notes.txt"), number.to_string()).unwrap();
            assert_eq!(seen(), before, "change {number}");
        }
    }

    #[test]
    fn single_files_are_read_beside_those_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("p")).unwrap();
        for file in ["p/a.lua", "b.lua", "a.lua", "c.txt"] {
            fs::write(path(file), file).unwrap();
        }
        let read = |name: &str| {
            let script = ScriptFile {
                path: path(name),
                dialect: Some("ngx".to_owned()),
                settings: Vec::new(),
            };
            let places = SourcePlaces { directory: Some(path("p")), scripts: vec![script] };
            Sources::read_places(&places, &["lua"], SourceLimits::default())
                .map_err(|error| error.to_string())
        };
        let sources = read("b.lua").unwrap();
        let files: Vec<_> =
            sources.files().iter().map(|f| (&*f.module, f.dialect_name())).collect();
        assert_eq!(files, [("a", "tokaido"), ("b", "ngx")]);
        assert!(read("a.lua").unwrap_err().contains("has the same name as"));
        assert!(read("c.txt").unwrap_err().contains("c.txt needs a name that ends in .lua"));
        assert!(read("d.lua").unwrap_err().contains("d.lua: "));
    }

    #[test]
    fn a_later_source_takes_the_place_of_an_earlier_one() {
        let mut sources = Sources::default();
        for text in ["one", "two"] {
            let text = text.as_bytes().into();
            sources.add(Source {
                module: "m".to_owned(),
                path: "m.lua".into(),
                text,
                dialect: None,
                settings: Vec::new(),
            });
        }
        assert_eq!(sources.files().len(), 1);
        assert_eq!(&*sources.files()[0].text, b"two");
    }
}
