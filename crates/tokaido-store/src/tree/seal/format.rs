//! A seal, byte by byte.
//!
//! ```text
//! 0   magic            8 bytes   "TOKAIDOS"
//! 8   version          u32       1
//! 12  length           u32       of the whole seal, at most 32 KiB
//! 16  CRC32C           u32       of the bytes behind it
//! 20  meta page        u32       CRC32C of that commit's meta page, behind its header
//! 24  store            u64       a random number, the same in all files of a store
//! 32  sequence         u64       the last transaction; the base holds it, and all before it
//! 40  commit           u64       LMDB's number of the commit that the base is at
//! 48  segment          u64       the last segment of the log, which holds no frame; 0 for none
//! 56  trees            u32       how many trees the base has
//! 60  databases        u32       how many there are
//! 64  for each tree: its number u32, depth u32, page of its root u64, records, bytes of keys,
//!     bytes of values u64 each
//!     for each database: its index u16, length of its name u16, number of its tree u32, its name
//! ```

use crate::{
    DatabaseStatistics,
    tree::{
        base::{PageDirectory, PageTree, format::NO_TREE, pages::Root},
        catalog::{self, CatalogEntry, DATABASE_TREES},
    },
};

const MAGIC: [u8; 8] = *b"TOKAIDOS";
const VERSION: u32 = 1;

/// Bytes before the trees.
pub(super) const HEAD_LEN: usize = 64;

/// Longest seal. It has room for the most databases that there can be, with their longest names.
pub(super) const LEN_MAX: usize = 32 << 10;

const CRC_AT: usize = 16;
const CRC_BEHIND: usize = 20;

/// Stands for no segment; the first one has the next number.
const NO_SEGMENT: u64 = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tree) struct Seal {
    pub(in crate::tree) base: PageDirectory,
    /// The last segment of the log, if there is one.
    pub(in crate::tree) segment: Option<u64>,
    pub(in crate::tree) databases: Vec<CatalogEntry>,
}

impl Seal {
    /// `None` if it is longer than a seal can be.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let PageDirectory { store, sequence, commit, meta_crc, trees } = &self.base;
        let segment = self.segment.unwrap_or(NO_SEGMENT);
        let mut bytes = vec![0; CRC_BEHIND];
        bytes.extend(meta_crc.to_le_bytes());
        for number in [*store, *sequence, *commit, segment] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((trees.len() as u32).to_le_bytes());
        bytes.extend((self.databases.len() as u32).to_le_bytes());
        for PageTree { tree, root, statistics: s } in trees {
            bytes.extend(tree.to_le_bytes());
            bytes.extend(u32::from(root.depth).to_le_bytes());
            for number in [root.page.unwrap_or(0), s.records, s.key_bytes, s.value_bytes] {
                bytes.extend(number.to_le_bytes());
            }
        }
        for CatalogEntry { index, tree, name } in &self.databases {
            bytes.extend((*index as u16).to_le_bytes());
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend(tree.to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        if bytes.len() > LEN_MAX {
            return None;
        }
        sign(&mut bytes);
        Some(bytes)
    }

    /// How long the seal is that begins so; `None` if none does.
    pub(super) fn len(head: &[u8]) -> Option<usize> {
        let mut fields = Fields { rest: head };
        let is_seal = fields.take::<8>()? == MAGIC && fields.u32()? == VERSION;
        let len = fields.u32()? as usize;
        (is_seal && (HEAD_LEN..=LEN_MAX).contains(&len)).then_some(len)
    }

    /// Reads a seal, which is as long as `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if Self::len(bytes)? != bytes.len() {
            return None;
        }
        let mut fields = Fields { rest: bytes.get(CRC_AT..)? };
        if fields.u32()? != crc32c::crc32c(fields.rest) {
            return None;
        }
        let meta_crc = fields.u32()?;
        let (store, sequence, commit) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let segment = Some(fields.u64()?).filter(|segment| *segment != NO_SEGMENT);
        let (trees, databases) = (fields.u32()?, fields.u32()?);
        let trees = (0..trees).map(|_| fields.tree()).collect::<Option<_>>()?;
        let databases = (0..databases).map(|_| fields.database()).collect::<Option<_>>()?;
        let base = PageDirectory { store, sequence, commit, meta_crc, trees };
        fields.rest.is_empty().then_some(Self { base, segment, databases })
    }
}

/// Makes the beginning of a seal right, if `bytes` have room for it.
pub(super) fn sign(bytes: &mut [u8]) {
    let len = bytes.len() as u32;
    let Some((head, rest)) = bytes.split_at_mut_checked(CRC_BEHIND) else { return };
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&len.to_le_bytes());
    head[CRC_AT..].copy_from_slice(&crc32c::crc32c(rest).to_le_bytes());
}

struct Fields<'b> {
    rest: &'b [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn tree(&mut self) -> Option<PageTree> {
        let (tree, depth, page) = (self.u32()?, u16::try_from(self.u32()?).ok()?, self.u64()?);
        let (records, key_bytes, value_bytes) = (self.u64()?, self.u64()?, self.u64()?);
        let root = Root::of(depth, page).filter(|root| root.page.unwrap_or(0) == page)?;
        (tree != NO_TREE).then_some(PageTree {
            tree,
            root,
            statistics: DatabaseStatistics { records, key_bytes, value_bytes },
        })
    }

    fn database(&mut self) -> Option<CatalogEntry> {
        let (index, len, tree) = (self.u16()?, self.u16()?, self.u32()?);
        let (name, rest) = self.rest.split_at_checked(len.into())?;
        self.rest = rest;
        let entry = catalog::entry(index.into(), tree, name)?;
        DATABASE_TREES.contains(&entry.tree).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(databases: usize) -> Seal {
        let root = Root::of(2, 77).unwrap();
        let statistics = DatabaseStatistics { records: 1, key_bytes: 2, value_bytes: 3 };
        let trees = (0..databases as u32).map(|tree| PageTree { tree, root, statistics }).collect();
        let name = |index: usize| format!("{index:_>64}");
        let databases =
            (0..databases).map(|i| CatalogEntry { index: i, tree: 2 + i as u32, name: name(i) });
        Seal {
            base: PageDirectory {
                store: u64::MAX,
                sequence: 1 << 40,
                commit: 3,
                meta_crc: 9,
                trees,
            },
            segment: None,
            databases: databases.collect(),
        }
    }

    #[test]
    fn a_seal_reads_back_and_no_damaged_one_does() {
        let seal = seal(2);
        let bytes = seal.encode().unwrap();
        assert_eq!(Seal::decode(&bytes), Some(seal));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Seal::decode(&damaged), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Seal::decode(&bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn trees_that_none_can_have_are_refused() {
        let (mut base, mut catalog) = (seal(2), seal(2));
        base.base.trees[1].tree = NO_TREE;
        catalog.databases[1].tree = 1;
        for seal in [base, catalog] {
            assert_eq!(Seal::decode(&seal.encode().unwrap()), None, "{seal:?}");
        }
    }

    #[test]
    fn there_is_room_for_as_many_databases_as_there_can_be() {
        let most = seal(crate::limits::DATABASES_MAX);
        assert_eq!(Seal::decode(&most.encode().unwrap()), Some(most));
        assert_eq!(seal(2 * crate::limits::DATABASES_MAX).encode(), None);
    }
}
