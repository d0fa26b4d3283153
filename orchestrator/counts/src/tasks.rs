//! Tasks, by the address of their task structure, and who made whom.

use std::collections::BTreeMap;

use crate::chain::Call;
use crate::vcpu::Frame;

/// Number of a task in the order in which the kernel made them; addresses are used again.
pub(crate) type Serial = u32;

/// What is kept of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub serial: Serial,
    pub idle: bool,
    /// Place of its name among those seen; zero if it is not known.
    pub process: u16,
    /// What it was in when it gave way.
    pub frames: Vec<Frame>,
    /// Calls that have not returned, if they are followed.
    pub calls: Vec<Call>,
}

/// Every task seen.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    by_address: BTreeMap<u64, Task>,
    /// Indexed by serial number; a task without a known maker is its own.
    makers: Vec<Serial>,
}

impl Tasks {
    /// The task at this address, entered as one of unknown origin if it is new.
    pub fn get(&mut self, address: u64) -> &mut Task {
        let makers = &mut self.makers;
        self.by_address.entry(address).or_insert_with(|| {
            let serial = next_serial(makers);
            makers.push(serial);
            Task { serial, ..Task::default() }
        })
    }

    /// A task made by another takes this address.
    pub fn made(&mut self, address: u64, maker: u64) {
        let Task { serial: maker, process, .. } = *self.get(maker);
        let serial = next_serial(&self.makers);
        self.makers.push(maker);
        self.by_address.insert(address, Task { serial, process, ..Task::default() });
    }

    /// Forgets which calls have not returned.
    pub fn forget_calls(&mut self) {
        self.by_address.values_mut().for_each(|task| task.calls.clear());
    }

    /// Whether the task is `root` or descends from it. Makers always have the lower number.
    pub fn descends(&self, mut task: Serial, root: Serial) -> bool {
        while task > root {
            let maker = self.makers.get(task as usize).copied().unwrap_or(task);
            if maker == task {
                return false;
            }
            task = maker;
        }
        task == root
    }
}

fn next_serial(makers: &[Serial]) -> Serial {
    Serial::try_from(makers.len()).unwrap_or(Serial::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_address_is_another_task() {
        let mut tasks = Tasks::default();
        let root = tasks.get(0x10).serial;
        tasks.made(0x20, 0x10);
        tasks.made(0x30, 0x20);
        let grandchild = tasks.get(0x30).serial;
        // The child is gone, a stranger has its address; the grandchild stays in the family.
        let stranger = tasks.get(0x90).serial;
        tasks.made(0x20, 0x90);
        let adopted = tasks.get(0x20).serial;
        assert!(tasks.descends(grandchild, root));
        assert!(!tasks.descends(adopted, root));
        assert!(tasks.descends(adopted, stranger));
        assert!(!tasks.descends(root, grandchild));
    }
}
