use super::decode;
use super::input::Raw;

/// What a mail says before its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Lower-case names and unfolded values, in order.
    fields: Vec<(String, String)>,
}

/// Names of which a mail has at least two, and other text hardly ever.
const KNOWN: &[&str] = &[
    "from",
    "to",
    "cc",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "received",
    "return-path",
    "delivered-to",
    "reply-to",
    "sender",
    "list-id",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "user-agent",
];

impl Header {
    /// Parts a mail into its header and the lines of its body. None if it does not begin with one.
    pub fn split<'r, 'a>(lines: &'r [Raw<'a>]) -> Option<(Self, &'r [Raw<'a>])> {
        let (header, body) = Self::of_part(lines);
        let known = |(name, _): &&(String, String)| KNOWN.contains(&name.as_str());
        (header.fields.iter().filter(known).count() >= 2).then_some((header, body))
    }

    /// The same of a part of a mail, whose header may be empty.
    pub fn of_part<'r, 'a>(lines: &'r [Raw<'a>]) -> (Self, &'r [Raw<'a>]) {
        let mut fields: Vec<(String, String)> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let text = decode::text(line.bytes);
            if text.trim().is_empty() {
                return (Self { fields }, &lines[index + 1..]);
            }
            if text.starts_with([' ', '\t']) {
                let Some((_, value)) = fields.last_mut() else { break };
                if value.len() < 10_000 {
                    *value += &format!(" {}", text.trim());
                }
                continue;
            }
            let name = |name: &str| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            };
            match text.split_once(':') {
                Some((key, value)) if name(key) => {
                    fields.push((key.to_ascii_lowercase(), value.trim().to_owned()));
                }
                _ => break,
            }
        }
        // No blank line ends it, or something else stands in it: it is none.
        (Self::default(), lines)
    }

    /// The first field of this name.
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// What the mail is about, with encoded words as they read.
    pub fn subject(&self) -> Option<String> {
        self.field("subject").map(decode::words)
    }

    /// Lower-case, without parameters.
    pub fn media_type(&self) -> String {
        let value = self.field("content-type").unwrap_or("text/plain");
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// What stands between the parts.
    pub fn boundary(&self) -> Option<&str> {
        let value = self.field("content-type")?;
        let parameter = value.split(';').map(str::trim).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
        });
        parameter.filter(|boundary| !boundary.is_empty())
    }

    /// Lower-case: `quoted-printable`, `base64`, ….
    pub fn encoding(&self) -> String {
        let value = self.field("content-transfer-encoding").unwrap_or_default();
        value.trim().to_ascii_lowercase()
    }
}
