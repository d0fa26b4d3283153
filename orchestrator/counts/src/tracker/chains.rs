//! What following call chains needs to know of the rest.

use super::{EntryFrame, Guest, Register, Tracker};
use crate::block::Block;
use crate::chain::{Arrival, Ended, Entry};
use crate::class::Class;
use crate::context::Kind;
use crate::file::RootEntry;

impl Tracker {
    /// What following chains needs of a block.
    pub(super) fn arrival(&self, block: &Block) -> Arrival {
        let Some(chains) = &self.chains else { return Arrival::default() };
        let last = block.last().map(|(last, _)| last.classes.as_slice()).unwrap_or_default();
        let ends = match () {
            () if block.is_user() => Ended::On,
            () if last.contains(&Class::Call) => Ended::Called,
            () if last.contains(&Class::Return) => Ended::Returned,
            () => Ended::On,
        };
        let instructions = u16::try_from(block.instructions.len()).unwrap_or(u16::MAX);
        Arrival { place: chains.place(block.address), ends, instructions }
    }

    /// A vCPU begins to execute a block: finds the chain that it belongs to, and counts it there.
    #[inline]
    pub(super) fn follow(&mut self, vcpu: usize, at: Arrival, guest: &mut impl Guest) {
        let (Some(chains), Some(open)) = (&mut self.chains, &mut self.open) else { return };
        let place = self.vcpus[vcpu].tally;
        if !chains.goes_on(vcpu, at.place) {
            let is_own = open.contexts[place].is_own_work();
            chains.arrive(vcpu, at.place, is_own, || guest.register(Register::Rsp));
        }
        chains.count(vcpu, at, &mut open.tallies[place].nodes);
    }

    /// Where chains are followed: so many instructions more, or fewer, of what was executed last.
    pub(super) fn correct_chain(&mut self, vcpu: usize, by: i64) {
        if let (Some(chains), Some(open)) = (&mut self.chains, &mut self.open) {
            chains.correct(vcpu, by, &mut open.tallies[self.vcpus[vcpu].tally].nodes);
        }
    }

    /// The next block begins an entry into the kernel.
    pub(super) fn enter_chain(&mut self, vcpu: usize, kind: Kind, frame: EntryFrame) {
        let Some(chains) = &mut self.chains else { return };
        let EntryFrame { from_user, stack, .. } = frame;
        let is_interrupt = matches!(kind, Kind::Interrupt(_) | Kind::SystemInterrupt(_));
        let root = self.open.as_ref().and_then(|open| open.root);
        let task = self.vcpus[vcpu].task.map(|task| self.tasks.get(task).serial);
        let of_root = match kind {
            Kind::Exception(_) => Some(RootEntry::Exception),
            _ => Some(RootEntry::Syscall),
        };
        let of_root =
            of_root.filter(|_| from_user && !is_interrupt && task.is_some() && task == root);
        chains.enter(vcpu, Entry { from_user, is_interrupt, stack, of_root });
    }
}
