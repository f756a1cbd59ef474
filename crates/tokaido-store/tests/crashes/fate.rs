//! What may happen to unsynced writes when the power fails.

/// What a system call has done to a file since its last sync.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

pub(crate) fn apply(file: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[*offset..end].copy_from_slice(bytes);
        }
        Change::Truncate { len } => file.truncate(*len),
    }
}

/// How much of the unsynced data reaches the disk when the power fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Nothing,
    Everything,
    /// The first changes.
    Prefix,
    /// Any of the changes.
    Subset,
    /// Any of their sectors, of this many bytes.
    Sectors(usize),
}

pub(crate) const FATES: [Fate; 6] = [
    Fate::Nothing,
    Fate::Everything,
    Fate::Prefix,
    Fate::Subset,
    Fate::Sectors(512),
    Fate::Sectors(4096),
];

/// Applies some of the sectors that a change touches.
pub(crate) fn tear(
    file: &mut Vec<u8>,
    change: &Change,
    len: usize,
    random: &mut impl FnMut(usize) -> usize,
) {
    let Change::Write { offset, bytes } = change else {
        if random(2) == 1 {
            apply(file, change);
        }
        return;
    };
    let mut at = *offset;
    while at < offset + bytes.len() {
        let end = ((at / len + 1) * len).min(offset + bytes.len());
        if random(2) == 1 {
            let bytes = bytes[at - offset..end - offset].to_vec();
            apply(file, &Change::Write { offset: at, bytes });
        }
        at = end;
    }
}
