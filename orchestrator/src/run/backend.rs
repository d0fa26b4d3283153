//! What boots the guests of a run.

use std::sync::Arc;

use kduel_protocol::GuestPlan;

use crate::boot::fake::Script;
use crate::boot::qemu_args::{ARCHITECTURES, Architecture};
use crate::boot::{FakeMachine, GuestSpec, Machine, QemuMachine, Watch};
use crate::host::qemu::Qemu;

/// What boots the guests of a run.
#[derive(Debug, Clone)]
pub enum Backend {
    /// QEMU on this host.
    Qemu(Qemu),
    /// Plays a script; for tests of everything around the guest.
    Fake(Arc<Script>),
}

impl Backend {
    /// What kind of machine its guests are.
    pub fn architecture(&self) -> &'static Architecture {
        match self {
            Self::Qemu(qemu) => qemu.architecture,
            Self::Fake(_) => &ARCHITECTURES[0],
        }
    }

    /// A machine for one boot; nothing is started yet.
    pub fn machine(&self, spec: GuestSpec, plan: &GuestPlan, watch: Watch) -> Box<dyn Machine> {
        match self {
            Self::Qemu(qemu) => Box::new(QemuMachine::new(spec, qemu.clone(), watch)),
            Self::Fake(script) => {
                Box::new(FakeMachine::new(spec, plan.clone(), script.clone(), watch))
            }
        }
    }
}
