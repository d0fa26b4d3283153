//! The call-backs.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::process::abort;
use std::ptr::null_mut;
use std::thread::{self, ThreadId};

use kduel_counts::{Repeats, Tracker, write};

use crate::arguments::Arguments;
use crate::ffi;
use crate::guest::CurrentVcpu;
use crate::turn::Turn;

/// Longest instruction of the architecture, in bytes.
const LONGEST_INSTRUCTION: usize = 15;

/// Everything between loading and exit.
pub struct Plugin {
    tracker: Tracker,
    out: File,
    /// There is one vCPU. Else QEMU must not be asked to test [`Plugin::open`]: where it does, it
    /// overwrites the constant that is the vCPU's index, and with it all of the same value that the
    /// block's own code uses (seen in 10.0.2). Zero, the index of the first, stays zero.
    alone: bool,
    /// Not zero while a window is open: tested before a call-back is made for a plain block.
    open: ffi::PerVcpu,
    /// Known from the first vCPU's call-back on; no block is executed before.
    running: Option<Running>,
}

/// How many vCPUs there are.
#[derive(Clone, Copy, Debug)]
pub struct Vcpus {
    /// When the guest starts.
    pub first: usize,
    /// At most.
    pub most: usize,
}

struct Running {
    guest: CurrentVcpu,
    turn: Turn,
    thread: ThreadId,
}

struct Cell(UnsafeCell<Option<Plugin>>);

// SAFETY: filled by `install`, before any vCPU exists; then used by the only thread that executes
// vCPUs (`on_vcpu` ends QEMU if there are two), and by `on_exit` when no vCPU executes any more.
#[expect(unsafe_code, reason = "call-backs share one state and cannot afford a lock per block")]
unsafe impl Sync for Cell {}

static PLUGIN: Cell = Cell(UnsafeCell::new(None));

/// The state, in a call-back. No call-back runs within another.
#[expect(unsafe_code, reason = "see `Cell`")]
#[inline]
fn plugin() -> &'static mut Plugin {
    // SAFETY: see `Cell`; the reference does not outlive the call-back that asks for it.
    match unsafe { &mut *PLUGIN.0.get() } {
        Some(plugin) => plugin,
        None => give_up("a call-back came before the plugin was installed"),
    }
}

fn give_up(problem: &str) -> ! {
    eprintln!("kduel-qemu-plugin: {problem}");
    abort()
}

impl Plugin {
    /// Asks QEMU for the call-backs.
    #[expect(unsafe_code, reason = "calls into QEMU; fills the shared state")]
    pub fn install(id: ffi::Id, vcpus: Vcpus, arguments: Arguments) {
        let Arguments { out, hooks, chains } = arguments;
        let tracker = Tracker::new(hooks, vcpus.most);
        // SAFETY: QEMU is ready for this when it installs plugins.
        let scoreboard = unsafe { ffi::qemu_plugin_scoreboard_new(size_of::<u64>()) };
        let open = ffi::PerVcpu { scoreboard, offset: 0 };
        let plugin = Self {
            tracker: match &chains {
                Some(symbols) => tracker.with_chains(symbols),
                None => tracker,
            },
            out,
            alone: vcpus.first == 1,
            open,
            running: None,
        };
        // SAFETY: QEMU installs plugins before it makes vCPUs, so nothing else refers to the cell.
        unsafe { *PLUGIN.0.get() = Some(plugin) };
        // SAFETY: `id` is the one that QEMU gave; the functions live as long as the plugin.
        unsafe {
            ffi::qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
            ffi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
            ffi::qemu_plugin_register_atexit_cb(id, on_exit, null_mut());
        }
    }

    /// Enters a block and asks for call-backs when it is executed.
    #[expect(unsafe_code, reason = "calls into QEMU")]
    fn translate(&mut self, tb: *mut ffi::TranslationBlock) {
        // SAFETY: `tb` is valid while QEMU translates it.
        let (address, length) =
            unsafe { (ffi::qemu_plugin_tb_vaddr(tb), ffi::qemu_plugin_tb_n_insns(tb)) };
        let (mut bytes, mut lengths) = (Vec::new(), Vec::with_capacity(length));
        for index in 0..length {
            let mut buffer = [0u8; LONGEST_INSTRUCTION];
            // SAFETY: `index` is below the number of instructions, the buffer as long as said.
            let size = unsafe {
                let insn = ffi::qemu_plugin_tb_get_insn(tb, index);
                ffi::qemu_plugin_insn_data(insn, buffer.as_mut_ptr().cast(), buffer.len());
                ffi::qemu_plugin_insn_size(insn).min(buffer.len())
            };
            bytes.extend_from_slice(&buffer[..size]);
            lengths.push(u8::try_from(size).unwrap_or(0));
        }
        let number = self.tracker.translate(address, &bytes, &lengths);
        let flags = if self.tracker.needs_registers(number) {
            ffi::READS_REGISTERS
        } else {
            ffi::NO_REGISTERS
        };
        let data = pack(number, 0);
        // SAFETY: as above; what is passed along is a number, not a pointer.
        unsafe {
            if !self.alone || self.tracker.is_always_needed(number) {
                ffi::qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, flags, data);
            } else {
                let (condition, open) = (ffi::UNEQUAL, self.open);
                ffi::qemu_plugin_register_vcpu_tb_exec_cond_cb(
                    tb, on_block, flags, condition, open, 0, data,
                );
            }
        }
        self.watch_instructions(tb, number);
    }

    /// Asks for call-backs at the instructions that need one of their own.
    #[expect(unsafe_code, reason = "calls into QEMU")]
    fn watch_instructions(&self, tb: *mut ffi::TranslationBlock, number: usize) {
        let Some(block) = self.tracker.block(number) else { return };
        let end = block.instructions.len().saturating_sub(1);
        for (index, instruction) in block.instructions.iter().enumerate() {
            let data = pack(number, index);
            // SAFETY: `tb` is valid while QEMU translates it, and has as many instructions.
            let insn = || unsafe { ffi::qemu_plugin_tb_get_insn(tb, index) };
            let at_execution = |function: ffi::OnExecution| {
                // SAFETY: as above; what is passed along is a number, not a pointer.
                unsafe {
                    ffi::qemu_plugin_register_vcpu_insn_exec_cb(
                        insn(),
                        function,
                        ffi::READS_REGISTERS,
                        data,
                    );
                }
            };
            if instruction.mark.is_some() && block.is_user() {
                at_execution(on_mark);
            }
            if instruction.repeats == Repeats::Compared && index == end && index > 0 {
                at_execution(on_comparison);
            }
            if instruction.may_touch_device && index == end && !block.is_user() {
                let (flags, rw) = (ffi::NO_REGISTERS, ffi::READS_AND_WRITES);
                // SAFETY: as above.
                unsafe {
                    ffi::qemu_plugin_register_vcpu_mem_cb(insn(), on_access, flags, rw, data);
                }
            }
        }
    }

    /// The tracker, the index of the vCPU that executes, and that vCPU.
    #[inline]
    fn running(&mut self) -> (&mut Tracker, usize, &mut CurrentVcpu) {
        match &mut self.running {
            Some(running) => (&mut self.tracker, running.turn.index(), &mut running.guest),
            None => give_up("a block was executed before any vCPU began"),
        }
    }
}

/// Whether this is where a kernel that is not randomised maps memory one to one, above the first MiB:
/// there are no devices, and asking QEMU would take a hundred times as long.
fn is_direct_map(address: u64) -> bool {
    const BASE: u64 = 0xffff_8880_0000_0000;
    const END: u64 = 0xffff_c880_0000_0000;
    (BASE + (1 << 20)..END).contains(&address)
}

/// The number of a block and of an instruction in it, in the word that QEMU hands back.
fn pack(number: usize, index: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number << 16 | index & 0xffff)
}

fn unpack(data: *mut c_void) -> (usize, usize) {
    (data.addr() >> 16, data.addr() & 0xffff)
}

extern "C" fn on_vcpu(_: ffi::Id, index: c_uint) {
    let plugin = plugin();
    let thread = thread::current().id();
    let running = plugin.running.get_or_insert_with(|| {
        let guest = CurrentVcpu::find();
        if !guest.is_complete() {
            give_up("this QEMU does not let plugins read rax, rcx, rdi, rsi and rsp");
        }
        Running { guest, turn: Turn::find(), thread }
    });
    if running.thread != thread {
        give_up("vCPUs run on several threads\n  use -accel tcg,thread=single");
    }
    if plugin.alone && index > 0 {
        give_up("a vCPU was added to a guest of one");
    }
    if !running.turn.enter(index as usize) {
        give_up("this QEMU does not let plugins tell several vCPUs apart\n  use one vCPU");
    }
}

extern "C" fn on_translation(_: ffi::Id, tb: *mut ffi::TranslationBlock) {
    plugin().translate(tb);
}

extern "C" fn on_block(_: c_uint, data: *mut c_void) {
    let (tracker, vcpu, guest) = plugin().running();
    tracker.execute(vcpu, unpack(data).0, guest);
}

extern "C" fn on_comparison(_: c_uint, data: *mut c_void) {
    let (tracker, vcpu, guest) = plugin().running();
    tracker.reach_comparison(vcpu, unpack(data).0, guest);
}

#[expect(unsafe_code, reason = "calls into QEMU")]
extern "C" fn on_mark(_: c_uint, data: *mut c_void) {
    let (number, index) = unpack(data);
    let plugin = plugin();
    let (tracker, vcpu, guest) = plugin.running();
    tracker.mark(vcpu, number, index, guest);
    let is_open = u64::from(tracker.is_open());
    let vcpus = plugin.running.as_ref().map_or(0, |running| running.turn.vcpus());
    for vcpu in 0..c_uint::try_from(vcpus).unwrap_or(0) {
        // SAFETY: the scoreboard is QEMU's and has a place for every vCPU that has begun.
        unsafe { ffi::qemu_plugin_u64_set(plugin.open, vcpu, is_open) };
    }
}

#[expect(unsafe_code, reason = "calls into QEMU")]
extern "C" fn on_access(_: c_uint, info: u32, address: u64, data: *mut c_void) {
    if is_direct_map(address) || !plugin().tracker.is_open() {
        return;
    }
    // SAFETY: `info` and `address` are those of this call-back; the handle lives as long.
    let device = unsafe {
        let place = ffi::qemu_plugin_get_hwaddr(info, address);
        !place.is_null() && ffi::qemu_plugin_hwaddr_is_io(place)
    };
    if device {
        let (tracker, vcpu, _) = plugin().running();
        tracker.access_device(vcpu, unpack(data).0);
    }
}

#[expect(unsafe_code, reason = "takes the shared state away")]
extern "C" fn on_exit(_: ffi::Id, _: *mut c_void) {
    // SAFETY: QEMU calls this when it exits; no vCPU executes any more.
    let Some(plugin) = (unsafe { (*PLUGIN.0.get()).take() }) else { return };
    let Plugin { tracker, mut out, .. } = plugin;
    let bytes = write(&tracker.finish());
    if let Err(error) = out.write_all(&bytes).and_then(|()| out.flush()) {
        eprintln!("kduel-qemu-plugin: failed to write the counts: {error}");
    }
}
