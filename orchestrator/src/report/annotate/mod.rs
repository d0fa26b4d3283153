//! Executed code with counts, as text and as a page.

mod html;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use html::annotation_html;
pub use text::annotation_text;
