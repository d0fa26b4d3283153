//! What people mail to each other, back to the lines that were typed or pasted: mailboxes, mails,
//! encodings and quotes undone, and for every piece of text the line of the input it stood in. Pure.

mod decode;
mod header;
mod input;
mod line;
mod part;
mod quote;
#[cfg(test)]
mod tests;

pub use input::{InputError, MAX_BYTES, MAX_LINES, Raw, messages, raw_lines, read};
pub use line::Line;
pub use part::{Left, Message, open};
