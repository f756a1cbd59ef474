//! A snapshot of the inner store together with what is mounted.

use crate::{ReadError, ReadTransaction, Snapshot};

use super::{
    read::{Composite, Inner},
    view::MountView,
};

pub(super) type CompositeSnapshot = Composite<Box<dyn Snapshot>>;

impl Inner for Box<dyn Snapshot> {
    fn now_ms(&self) -> u64 {
        (**self).now_ms()
    }

    fn read(&mut self) -> &mut dyn ReadTransaction {
        &mut **self
    }
}

impl CompositeSnapshot {
    /// `inner` holds a view already.
    pub(super) fn new(inner: Box<dyn Snapshot>, mut mounted: MountView) -> Self {
        mounted.hold();
        Self { inner, mounted }
    }
}

impl Snapshot for CompositeSnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        self.inner.renew()?;
        self.mounted.hold();
        Ok(())
    }

    fn release(&mut self) {
        self.inner.release();
        self.mounted.release();
    }
}
