//! Instructions as text, in the syntax of the kernel's own sources, and what they are alike by.

use std::rc::Rc;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter as _, GasFormatter, Instruction, OpKind,
    Register, SymbolResolver, SymbolResult,
};

use super::names::{Function, Names};

/// An instruction as it is shown and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Everything but a target within the function.
    pub text: String,
    /// Where a branch within the function goes.
    pub target: Option<u64>,
    /// What stays the same when registers, offsets and addresses change.
    pub shape: String,
    /// The function that it calls or jumps to.
    pub callee: Option<String>,
}

/// Takes the code of one function apart.
pub(super) struct Disassembler<'a> {
    names: Rc<Names>,
    function: &'a Function,
    formatter: GasFormatter,
}

impl<'a> Disassembler<'a> {
    pub fn new(names: &Rc<Names>, function: &'a Function) -> Self {
        let resolver: Box<dyn SymbolResolver> = Box::new(Resolver(Rc::clone(names)));
        let mut formatter = GasFormatter::with_options(Some(resolver), None);
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_rip_relative_addresses(true);
        Self { names: Rc::clone(names), function, formatter }
    }

    /// One instruction; bytes that are none are shown as bytes.
    pub fn text(&mut self, address: u64, bytes: &[u8]) -> Text {
        let insn = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        if insn.is_invalid() {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let text = format!("(bytes {})", digits.join(" "));
            return Text { text, target: None, shape: "(bytes)".to_owned(), callee: None };
        }
        let mut mnemonic = String::new();
        self.formatter.format_mnemonic(&insn, &mut mnemonic);
        let branch = is_near_branch(&insn).then(|| insn.near_branch_target());
        match branch {
            Some(target) if self.function.range.contains(&target) => Text {
                shape: format!("{mnemonic} within"),
                text: mnemonic,
                target: Some(target),
                callee: None,
            },
            Some(target) => {
                let name = self.names.code_at(target);
                let callee = name.map(|(name, _)| name.to_owned());
                let shown = name.map_or_else(|| format!("{target:#x}"), shown);
                let text = format!("{mnemonic} {shown}");
                Text { shape: format!("{mnemonic} away"), text, target: None, callee }
            }
            None => {
                let mut text = String::new();
                self.formatter.format(&insn, &mut text);
                let shape = shape(&mnemonic, &insn);
                Text { text, target: None, shape, callee: None }
            }
        }
    }
}

fn shown((name, offset): (&str, u64)) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") }
}

fn is_near_branch(insn: &Instruction) -> bool {
    use FlowControl::{Call, ConditionalBranch, UnconditionalBranch};
    matches!(insn.flow_control(), Call | ConditionalBranch | UnconditionalBranch)
        && matches!(insn.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32)
}

/// The mnemonic, and of each operand its kind and width; of memory also whether it is the stack, a
/// fixed address or a CPU's own.
fn shape(mnemonic: &str, insn: &Instruction) -> String {
    let mut shape = mnemonic.to_owned();
    for operand in 0..insn.op_count() {
        shape.push(' ');
        match insn.op_kind(operand) {
            OpKind::Register => {
                shape.push_str(&format!("r{}", insn.op_register(operand).size()));
            }
            OpKind::Memory => {
                shape.push_str(match (insn.segment_prefix(), insn.memory_base()) {
                    (Register::GS, _) => "gs",
                    (_, Register::RSP | Register::RBP) => "stack",
                    (_, Register::RIP | Register::None) => "fixed",
                    _ => "memory",
                });
                shape.push_str(&insn.memory_size().size().to_string());
            }
            _ => shape.push('n'),
        }
    }
    shape
}

/// Names for addresses in operands. Owns what it asks, as the formatter owns it.
struct Resolver(Rc<Names>);

impl SymbolResolver for Resolver {
    fn symbol(
        &mut self,
        insn: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let operand = instruction_operand?;
        let is_memory = insn.op_kind(operand) == OpKind::Memory;
        let fixed = insn.memory_base() == Register::None && insn.memory_index() == Register::None;
        let own_of_cpu = is_memory && insn.segment_prefix() == Register::GS;
        let found = if own_of_cpu && (fixed || insn.memory_base() == Register::RIP) {
            self.0.per_cpu_at(address)
        } else {
            self.0.operand_at(address)
        };
        let (name, offset) = found?;
        Some(SymbolResult::with_str(address - offset, name))
    }
}

#[cfg(test)]
mod tests {
    use kduel_counts::Symbols;

    use super::*;

    fn text(bytes: &[u8]) -> Text {
        let symbols = "1000 A pcpu_hot\nffffffff81000000 T fork\nffffffff81000100 T clone\n\
                       ffffffff81000200 D table\n";
        let names = Rc::new(Names::new(&Symbols::parse(symbols).unwrap()));
        let start = 0xffff_ffff_8100_0000;
        let function = Function { name: "fork".into(), range: start..start + 0x100 };
        Disassembler::new(&names, &function).text(start + 0x10, bytes)
    }

    #[test]
    fn operands_are_named() {
        let table: [(&[u8], &str); 8] = [
            (&[0xe8, 0xeb, 0, 0, 0], "call clone"),
            (&[0xe9, 0xef, 0, 0, 0], "jmp clone+0x4"),
            (&[0x65, 0x48, 0x8b, 0x04, 0x25, 0x08, 0x10, 0, 0], "mov %gs:pcpu_hot+0x8,%rax"),
            (&[0x48, 0x8b, 0x05, 0xf1, 0x01, 0, 0], "mov table+0x8(%rip),%rax"),
            (&[0x48, 0x8b, 0x04, 0xc5, 0, 2, 0, 0x81], "mov table(,%rax,8),%rax"),
            (&[0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff], "cmp $0xfffffffffffff000,%rax"),
            (&[0x48, 0x8b, 0x43, 0x10], "mov 0x10(%rbx),%rax"),
            (&[0x06], "(bytes 06)"),
        ];
        for (bytes, shown) in table {
            assert_eq!(text(bytes).text, shown);
        }
    }

    #[test]
    fn branches_within_the_function_are_alike_wherever_they_go() {
        let (short, long) = (text(&[0x75, 0x10]), text(&[0x0f, 0x85, 0x20, 0, 0, 0]));
        assert_eq!(short.target, Some(0xffff_ffff_8100_0022));
        assert_eq!(long.target, Some(0xffff_ffff_8100_0036));
        assert_eq!((&short.text, &short.shape), (&long.text, &long.shape));
        assert_eq!(text(&[0xe8, 0xeb, 0, 0, 0]).callee.as_deref(), Some("clone"));
    }

    #[test]
    fn shapes_leave_registers_and_offsets_out() {
        let shape = |bytes: &[u8]| text(bytes).shape;
        assert_eq!(shape(&[0x48, 0x8b, 0x43, 0x10]), shape(&[0x4c, 0x8b, 0x67, 0x20]));
        assert_ne!(shape(&[0x48, 0x8b, 0x43, 0x10]), shape(&[0x48, 0x8b, 0x44, 0x24, 0x10]));
        assert_ne!(shape(&[0x48, 0x8b, 0x43, 0x10]), shape(&[0x8b, 0x43, 0x10]));
    }
}
