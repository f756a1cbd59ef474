//! The journal of the preloaded library, and the disk that it describes: the durable state of each
//! file and directory, and the changes since that were not synced.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use crate::{
    fate::{Change, Fate, apply, tear},
    random::Random,
};

/// What happened, in order.
#[derive(Debug)]
pub(crate) enum Event {
    Created {
        inode: u64,
        path: String,
    },
    MadeDirectory {
        path: String,
    },
    Removed {
        path: String,
    },
    Renamed {
        from: String,
        to: String,
    },
    Changed {
        inode: u64,
        change: Change,
    },
    /// A write that was durable once it had returned.
    WrittenThrough {
        inode: u64,
        change: Change,
    },
    Synced {
        inode: u64,
    },
    SyncFailed {
        inode: u64,
    },
    DirectorySynced {
        path: String,
    },
    /// This call was the first to fail, or the last before the end.
    Faulted {
        call: String,
    },
    /// The process noted that every transaction up to this one is durable.
    Acknowledged(u64),
    /// The process is about to open the store.
    Opening,
    /// How far the process has got; the test knows what that means.
    Step(u64),
}

impl Event {
    /// Whether something was about to become durable.
    pub(crate) fn is_sync(&self) -> bool {
        matches!(
            self,
            Self::Synced { .. } | Self::WrittenThrough { .. } | Self::DirectorySynced { .. }
        )
    }
}

/// Entries that the process under test itself writes to the journal.
pub(crate) const ACKNOWLEDGED: u8 = b'A';
pub(crate) const OPENING: u8 = b'N';
pub(crate) const STEP: u8 = b'P';

/// An entry, as the library writes it.
pub(crate) fn encode(kind: u8, number: u64) -> Vec<u8> {
    let mut entry = vec![kind];
    entry.extend_from_slice(&number.to_le_bytes());
    entry.resize(HEAD_LEN, 0);
    entry
}

const HEAD_LEN: usize = 1 + 8 + 8 + 4;

pub(crate) fn read(path: &Path) -> Vec<Event> {
    let journal = fs::read(path).unwrap();
    let mut rest = &journal[..];
    let mut events = Vec::new();
    while let Some((head, tail)) = rest.split_first_chunk::<HEAD_LEN>() {
        let number = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().unwrap());
        let len = u32::from_le_bytes(*head[17..].first_chunk().unwrap()) as usize;
        let (bytes, tail) = tail.split_at(len);
        events.push(event(head[0], number(1), number(9), bytes));
        rest = tail;
    }
    assert!(rest.is_empty(), "the journal ends in the middle of an entry");
    events
}

fn event(kind: u8, number: u64, offset: u64, bytes: &[u8]) -> Event {
    let text = || String::from_utf8(bytes.to_vec()).unwrap();
    let offset = offset as usize;
    let write = || Change::Write { offset, bytes: bytes.to_vec() };
    match kind {
        b'C' => Event::Created { inode: number, path: text() },
        b'M' => Event::MadeDirectory { path: text() },
        b'U' => Event::Removed { path: text() },
        b'R' => {
            let both = text();
            let (from, to) = both.split_once('\0').unwrap();
            Event::Renamed { from: from.to_owned(), to: to.to_owned() }
        }
        b'W' => Event::Changed { inode: number, change: write() },
        b'D' => Event::WrittenThrough { inode: number, change: write() },
        b'Z' => {
            let len = u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
            let change = Change::Write { offset, bytes: vec![0; len] };
            Event::Changed { inode: number, change }
        }
        b'T' => Event::Changed { inode: number, change: Change::Truncate { len: offset } },
        b'S' => Event::Synced { inode: number },
        b'F' => Event::SyncFailed { inode: number },
        b'd' => Event::DirectorySynced { path: text() },
        b'X' => Event::Faulted { call: text() },
        ACKNOWLEDGED => Event::Acknowledged(number),
        OPENING => Event::Opening,
        STEP => Event::Step(number),
        _ => panic!("an entry of kind {kind}"),
    }
}

/// Files by their path, and directories, which have no bytes.
pub(crate) type Image = BTreeMap<String, Option<Vec<u8>>>;

/// Makes the files of an image.
pub(crate) fn make(image: &Image, directory: &Path) {
    // A directory sorts before its contents.
    for (path, bytes) in image {
        let path = directory.join(path);
        match bytes {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => fs::create_dir(path).unwrap(),
        }
    }
}

/// What a name refers to. Directories are numbered in the order of their creation: a renamed one
/// keeps its number.
#[derive(Clone, Copy)]
enum Node {
    File(usize),
    Directory(usize),
}

/// The root directory.
const ROOT: usize = 0;

/// A directory, and a name in it.
type Place = (usize, String);

type Names = BTreeMap<Place, Node>;

/// A change of a directory's entries.
enum Naming {
    Add(Place, Node),
    Remove(Place),
    /// Renames a node, whose old name may not be durable itself.
    Rename(Place, Place, Node),
}

impl Naming {
    /// The directory whose sync makes the change durable.
    fn directory(&self) -> usize {
        let (Self::Add(place, _) | Self::Remove(place) | Self::Rename(_, place, _)) = self;
        place.0
    }
}

fn rename(names: &mut Names, naming: &Naming) {
    match naming {
        Naming::Add(place, node) => {
            names.insert(place.clone(), *node);
        }
        Naming::Remove(place) => {
            names.remove(place);
        }
        Naming::Rename(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

#[derive(Default)]
struct File {
    synced: Vec<u8>,
    /// With their position in the order of all changes on the disk.
    unsynced: Vec<(u64, Change)>,
}

/// A disk with a directory of files on it.
#[derive(Default)]
pub(crate) struct WholeDisk {
    files: Vec<File>,
    /// The file that has an inode number now; numbers are reused.
    inodes: HashMap<u64, usize>,
    /// The current directories, their durable state, and the changes since.
    names_now: Names,
    names: Names,
    namings: Vec<(u64, Naming)>,
    /// How many directories have been made.
    directories: usize,
    changes: u64,
    /// The last transaction that is known to be durable.
    pub(crate) acknowledged: u64,
}

impl WholeDisk {
    pub(crate) fn happen(&mut self, event: &Event) {
        self.changes += 1;
        match event {
            Event::Created { inode, path } => {
                self.inodes.insert(*inode, self.files.len());
                self.name(Naming::Add(self.place(path), Node::File(self.files.len())));
                self.files.push(File::default());
            }
            Event::MadeDirectory { path } => {
                self.directories += 1;
                self.name(Naming::Add(self.place(path), Node::Directory(self.directories)));
            }
            Event::Removed { path } => self.name(Naming::Remove(self.place(path))),
            Event::Renamed { from, to } => {
                let (from, to) = (self.place(from), self.place(to));
                let node = self.names_now[&from];
                self.name(Naming::Rename(from, to, node));
            }
            Event::Changed { inode, change } => {
                let entry = (self.changes, change.clone());
                self.file(*inode).unsynced.push(entry);
            }
            Event::WrittenThrough { inode, change } => apply(&mut self.file(*inode).synced, change),
            Event::Synced { inode } => {
                let file = self.file(*inode);
                for (_, change) in std::mem::take(&mut file.unsynced) {
                    apply(&mut file.synced, &change);
                }
            }
            // The operating system has marked the pages clean: no later sync writes them.
            Event::SyncFailed { inode } => self.file(*inode).unsynced.clear(),
            Event::DirectorySynced { path } => {
                let synced = self.directory(path);
                for (_, naming) in self.namings.extract_if(.., |(_, n)| n.directory() == synced) {
                    rename(&mut self.names, &naming);
                }
            }
            Event::Acknowledged(number) => self.acknowledged = *number,
            Event::Faulted { .. } | Event::Opening | Event::Step(_) => {}
        }
    }

    fn name(&mut self, naming: Naming) {
        rename(&mut self.names_now, &naming);
        self.namings.push((self.changes, naming));
    }

    /// The directory that a path leads to now.
    fn directory(&self, path: &str) -> usize {
        path.split('/').filter(|name| !name.is_empty()).fold(ROOT, |directory, name| {
            match self.names_now[&(directory, name.to_owned())] {
                Node::Directory(below) => below,
                Node::File(_) => panic!("a file is on the way to {path}"),
            }
        })
    }

    /// Where the last name of a path is found now.
    fn place(&self, path: &str) -> Place {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.directory(parent), name.to_owned())
    }

    fn file(&mut self, inode: u64) -> &mut File {
        &mut self.files[self.inodes[&inode]]
    }

    /// What the disk holds if the power fails now. `under_way` is an unfinished write.
    pub(crate) fn image(&self, fate: Fate, random: &mut Random, under_way: &Event) -> Image {
        let mut pending: Vec<u64> = self.namings.iter().map(|(at, _)| *at).collect();
        pending.extend(self.files.iter().flat_map(|file| &file.unsynced).map(|(at, _)| *at));
        pending.sort_unstable();
        pending.push(u64::MAX);
        let cut = pending[random.below(pending.len())];
        let mut names = self.names.clone();
        for (at, naming) in &self.namings {
            let happens = match fate {
                Fate::Nothing => false,
                Fate::Everything => true,
                Fate::Prefix => *at < cut,
                Fate::Subset | Fate::Sectors(_) => random.below(2) == 1,
            };
            if happens {
                rename(&mut names, naming);
            }
        }
        let mut image = Image::new();
        // Directories that exist, with their paths; their entries are still to be visited.
        let mut found = vec![(ROOT, String::new())];
        while let Some((directory, path)) = found.pop() {
            let entries = names.range((directory, String::new())..(directory + 1, String::new()));
            for ((_, name), node) in entries {
                let path = format!("{path}{name}");
                let bytes = match node {
                    Node::Directory(below) => {
                        found.push((*below, format!("{path}/")));
                        None
                    }
                    Node::File(file) => Some(self.content(*file, fate, cut, random, under_way)),
                };
                image.insert(path, bytes);
            }
        }
        image
    }

    fn content(
        &self,
        file: usize,
        fate: Fate,
        cut: u64,
        random: &mut Random,
        under_way: &Event,
    ) -> Vec<u8> {
        let mut bytes = self.files[file].synced.clone();
        let mut below = |n: usize| random.below(n);
        let mut meet = |at: u64, change: &Change| match fate {
            Fate::Nothing => {}
            Fate::Everything => apply(&mut bytes, change),
            Fate::Prefix if at < cut => apply(&mut bytes, change),
            Fate::Subset if below(2) == 1 => apply(&mut bytes, change),
            Fate::Sectors(len) => tear(&mut bytes, change, len, &mut below),
            Fate::Prefix | Fate::Subset => {}
        };
        for (at, change) in &self.files[file].unsynced {
            meet(*at, change);
        }
        if let Event::WrittenThrough { inode, change } = under_way
            && self.inodes[inode] == file
        {
            meet(u64::MAX - 1, change);
        }
        bytes
    }
}
