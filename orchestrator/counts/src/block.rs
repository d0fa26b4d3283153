//! Blocks of guest code, taken apart once, when they are translated.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use kduel_protocol::Mark;

use crate::class::Class;

/// Size of the smallest page; no block is longer.
const PAGE: u64 = 4096;

/// How a string instruction repeats. QEMU 10.0, when it counts instructions, executes a step at a time
/// and jumps back to the instruction after each; it is done when there is nothing left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Not at all.
    No,
    /// As often as `rcx` says; the last execution is empty.
    Counted,
    /// Until a comparison ends it, or `rcx`, in which case the last execution is empty.
    Compared,
}

/// One instruction of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Distance from the block's first byte.
    pub offset: u16,
    /// Length in bytes.
    pub length: u8,
    /// Every class but loads, stores and what only execution tells, each at most once.
    pub classes: Vec<Class>,
    /// Reads of memory.
    pub loads: u8,
    /// Writes of memory.
    pub stores: u8,
    /// Bytes that one step of a string instruction handles; zero for every other instruction.
    pub step_bytes: u8,
    /// How a string instruction repeats.
    pub repeats: Repeats,
    /// Names memory outside the stack and does not branch: the only kind that talks to devices.
    pub may_touch_device: bool,
    /// A mark of the agent's.
    pub mark: Option<Mark>,
}

/// Straight code that QEMU translates, and executes, as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Guest virtual address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: Box<[u8]>,
    /// Where its instructions are and what they do.
    pub instructions: Vec<Instruction>,
}

impl Block {
    /// Takes 64-bit code apart; `lengths` are those of its instructions, as QEMU found them.
    pub fn decode(address: u64, bytes: &[u8], lengths: &[u8]) -> Self {
        let mut offset = 0usize;
        let mut factory = InstructionInfoFactory::new();
        let instructions = lengths
            .iter()
            .map(|&length| {
                let end = offset.saturating_add(length.into()).min(bytes.len());
                let code = bytes.get(offset..end).unwrap_or_default();
                let at = address.wrapping_add(offset as u64);
                let decoded = decode(&mut factory, at, code, length);
                let instruction =
                    Instruction { offset: u16::try_from(offset).unwrap_or(u16::MAX), ..decoded };
                offset = end;
                instruction
            })
            .collect();
        Self { address, bytes: bytes.into(), instructions }
    }

    /// Whether this is code of a process: the lower half of the address space.
    pub fn is_user(&self) -> bool {
        self.address >> 63 == 0
    }

    /// Which instruction starts at this address, given that it is one of this block.
    ///
    /// Only places in the page are compared: QEMU shares a block among all addresses at which the same
    /// page is mapped, and reports the first.
    pub fn index_of(&self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.address) % PAGE;
        self.instructions.iter().position(|i| u64::from(i.offset) == offset)
    }

    /// How many instructions there are from one on.
    pub(crate) fn instructions_from(&self, index: usize) -> i64 {
        i64::try_from(self.instructions.len().saturating_sub(index)).unwrap_or(i64::MAX)
    }

    /// Whether its last instruction repeats and is the one at this address.
    pub fn ends_repeating(&self, address: u64) -> bool {
        self.last().is_some_and(|(last, at)| {
            last.repeats != Repeats::No && at.wrapping_sub(address) % PAGE == 0
        })
    }

    /// The last instruction and its address.
    pub fn last(&self) -> Option<(&Instruction, u64)> {
        let last = self.instructions.last()?;
        Some((last, self.address.wrapping_add(u64::from(last.offset))))
    }
}

fn decode(
    factory: &mut InstructionInfoFactory,
    address: u64,
    code: &[u8],
    length: u8,
) -> Instruction {
    let insn = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    let info = factory.info(&insn);
    let (mut loads, mut stores) = (0u8, 0u8);
    for memory in info.used_memory() {
        use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
        let access = memory.access();
        loads += u8::from(matches!(access, Read | CondRead | ReadWrite | ReadCondWrite));
        stores += u8::from(matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite));
    }
    let string = insn.is_string_instruction();
    let has_memory = (0..insn.op_count()).any(|i| names_memory(insn.op_kind(i)));
    let branches = insn.flow_control() != FlowControl::Next;
    Instruction {
        offset: 0,
        length,
        classes: classes(&insn),
        loads,
        stores,
        step_bytes: if string { u8::try_from(insn.memory_size().size()).unwrap_or(0) } else { 0 },
        repeats: repeats(&insn),
        may_touch_device: has_memory && !branches && loads + stores > 0,
        mark: Mark::read(code),
    }
}

fn repeats(insn: &iced_x86::Instruction) -> Repeats {
    use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
    if !insn.is_string_instruction() || !(insn.has_rep_prefix() || insn.has_repne_prefix()) {
        return Repeats::No;
    }
    match insn.mnemonic() {
        Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq => Repeats::Compared,
        _ => Repeats::Counted,
    }
}

fn names_memory(kind: OpKind) -> bool {
    use OpKind::{
        MemoryESDI, MemoryESEDI, MemoryESRDI, MemorySegDI, MemorySegEDI, MemorySegESI,
        MemorySegRDI, MemorySegRSI, MemorySegSI,
    };
    matches!(
        kind,
        OpKind::Memory
            | MemoryESDI
            | MemoryESEDI
            | MemoryESRDI
            | MemorySegDI
            | MemorySegEDI
            | MemorySegESI
            | MemorySegRDI
            | MemorySegRSI
            | MemorySegSI
    )
}

fn classes(insn: &iced_x86::Instruction) -> Vec<Class> {
    let mut classes = Vec::new();
    let mnemonic = insn.mnemonic();
    if insn.has_lock_prefix() {
        classes.push(Class::Locked);
    } else if mnemonic == Mnemonic::Xchg && (0..2).any(|i| insn.op_kind(i) == OpKind::Memory) {
        classes.push(Class::XchgMemory);
    }
    match mnemonic {
        Mnemonic::Invlpg | Mnemonic::Invpcid => classes.push(Class::TlbEntry),
        Mnemonic::Rdmsr => classes.push(Class::MsrRead),
        Mnemonic::Wrmsr | Mnemonic::Wrmsrns => classes.push(Class::MsrWrite),
        Mnemonic::Cpuid => classes.push(Class::Cpuid),
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => classes.push(Class::InterruptReturn),
        Mnemonic::Hlt => classes.push(Class::Halt),
        Mnemonic::Pause => classes.push(Class::Pause),
        Mnemonic::Div | Mnemonic::Idiv => classes.push(Class::Divide),
        Mnemonic::Stac | Mnemonic::Clac => classes.push(Class::UserAccess),
        Mnemonic::In
        | Mnemonic::Out
        | Mnemonic::Insb
        | Mnemonic::Insw
        | Mnemonic::Insd
        | Mnemonic::Outsb
        | Mnemonic::Outsw
        | Mnemonic::Outsd => classes.push(Class::PortIo),
        _ => {}
    }
    if insn.code() == Code::Mov_cr_r64 && insn.op0_register() == Register::CR3 {
        classes.push(Class::Cr3Write);
    }
    match insn.flow_control() {
        FlowControl::ConditionalBranch => classes.push(Class::ConditionalBranch),
        FlowControl::IndirectBranch => classes.push(Class::IndirectBranch),
        FlowControl::Call if mnemonic == Mnemonic::Call => classes.push(Class::Call),
        FlowControl::IndirectCall => classes.extend([Class::IndirectBranch, Class::Call]),
        FlowControl::Return if matches!(mnemonic, Mnemonic::Ret | Mnemonic::Retf) => {
            classes.push(Class::Return);
        }
        _ => {}
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(code: &[u8]) -> Instruction {
        let length = u8::try_from(code.len()).expect("short");
        Block::decode(0x1000, code, &[length]).instructions.remove(0)
    }

    #[test]
    fn instructions_fall_into_their_classes() {
        let table: [(&[u8], &[Class], u8, u8); 24] = [
            (&[0x48, 0x8b, 0x07], &[], 1, 0), // mov rax, [rdi]
            (&[0x48, 0x89, 0x07], &[], 0, 1), // mov [rdi], rax
            (&[0x48, 0x01, 0x07], &[], 1, 1), // add [rdi], rax
            (&[0xf0, 0x48, 0x01, 0x07], &[Class::Locked], 1, 1), // lock add [rdi], rax
            (&[0x48, 0x87, 0x07], &[Class::XchgMemory], 1, 1), // xchg [rdi], rax
            (&[0x48, 0x87, 0xc3], &[], 0, 0), // xchg rbx, rax
            (&[0x0f, 0x22, 0xd8], &[Class::Cr3Write], 0, 0), // mov cr3, rax
            (&[0x0f, 0x20, 0xd8], &[], 0, 0), // mov rax, cr3
            (&[0x0f, 0x01, 0x3f], &[Class::TlbEntry], 0, 0), // invlpg [rdi]
            (&[0x0f, 0x32], &[Class::MsrRead], 0, 0), // rdmsr
            (&[0x0f, 0x30], &[Class::MsrWrite], 0, 0), // wrmsr
            (&[0x0f, 0xa2], &[Class::Cpuid], 0, 0), // cpuid
            (&[0xee], &[Class::PortIo], 0, 0), // out dx, al
            (&[0xf4], &[Class::Halt], 0, 0),  // hlt
            (&[0xf3, 0x90], &[Class::Pause], 0, 0), // pause
            (&[0x48, 0xf7, 0xf1], &[Class::Divide], 0, 0), // div rcx
            (&[0x0f, 0x01, 0xcb], &[Class::UserAccess], 0, 0), // stac
            (&[0x75, 0xfe], &[Class::ConditionalBranch], 0, 0), // jne
            (&[0xff, 0xe0], &[Class::IndirectBranch], 0, 0), // jmp rax
            (&[0xff, 0xd0], &[Class::IndirectBranch, Class::Call], 0, 1), // call rax
            (&[0xe8, 0, 0, 0, 0], &[Class::Call], 0, 1), // call
            (&[0xc3], &[Class::Return], 1, 0), // ret
            (&[0x55], &[], 0, 1),             // push rbp
            (&[0xeb, 0xfe], &[], 0, 0),       // jmp
        ];
        for (code, classes, loads, stores) in table {
            let found = one(code);
            assert_eq!(found.classes, classes, "{code:x?}");
            assert_eq!((found.loads, found.stores), (loads, stores), "{code:x?}");
        }
        assert_eq!(one(&[0x48, 0xcf]).classes, [Class::InterruptReturn]);
    }

    #[test]
    fn string_instructions_tell_their_step() {
        let found = [
            (one(&[0xf3, 0xa4]), Repeats::Counted, 1), // rep movsb
            (one(&[0xf3, 0x48, 0xab]), Repeats::Counted, 8), // rep stosq
            (one(&[0xf2, 0xae]), Repeats::Compared, 1), // repne scasb
            (one(&[0x48, 0xa5]), Repeats::No, 8),      // movsq
            (one(&[0xf3, 0xc3]), Repeats::No, 0),      // rep ret, a plain return
        ];
        for (instruction, repeats, step) in found {
            assert_eq!((instruction.repeats, instruction.step_bytes), (repeats, step));
        }
    }

    #[test]
    fn only_plain_accesses_outside_the_stack_reach_devices() {
        assert!(one(&[0x89, 0x07]).may_touch_device); // mov [rdi], eax
        assert!(!one(&[0x55]).may_touch_device); // push rbp
        assert!(!one(&[0xff, 0x27]).may_touch_device); // jmp [rdi]
        assert!(!one(&[0x48, 0x8d, 0x07]).may_touch_device); // lea rax, [rdi]
    }

    #[test]
    fn an_instruction_is_found_in_another_mapping_of_the_page() {
        let block = Block::decode(0x7fff_0ffc, &[0x90, 0x55, 0xc3], &[1, 1, 1]);
        assert_eq!(block.index_of(0x7fff_0ffd), Some(1));
        assert_eq!(block.index_of(0x1234_5ffe), Some(2));
        assert_eq!(block.index_of(0x7fff_0fff), None);
    }
}
