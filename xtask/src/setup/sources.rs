//! Reads apt's lists of sources in both of their formats.

/// One archive and suite that packages come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Address, as written.
    pub uri: String,
    /// `bookworm`, `bookworm-security`, …
    pub suite: String,
    /// `main`, …
    pub components: Vec<String>,
    /// The keyring it is signed by, where one is named.
    pub keyring: Option<String>,
}

impl Source {
    /// As a line of `sources.list`.
    pub fn line(&self) -> String {
        let signed = self.keyring.as_ref().map(|ring| format!("[signed-by={ring}] "));
        let components = self.components.join(" ");
        format!("deb {}{} {} {components}", signed.unwrap_or_default(), self.uri, self.suite)
    }

    /// The release it belongs to: `bookworm` of `bookworm-security`.
    fn release(&self) -> &str {
        self.suite.split(['-', '/']).next().unwrap_or_default()
    }
}

/// Of a file in the format of one line each (`*.list`). Lines that are no binary source are
/// passed over, as are those that are switched off.
pub fn one_line_format(text: &str) -> Vec<Source> {
    text.lines().filter_map(one_line).collect()
}

fn one_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim().strip_prefix("deb")?;
    let rest = line.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let keyring = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source {
        uri: words.next()?,
        suite: words.next()?,
        components: words.collect(),
        keyring: keyring.and_then(keyring_file),
    })
}

/// Of a file in the deb822 format (`*.sources`): every combination of address and suite.
pub fn deb822_format(text: &str) -> Vec<Source> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).flat_map(stanza).collect()
}

fn stanza(lines: &[&str]) -> Vec<Source> {
    let words = |name| field(lines, name).unwrap_or_default();
    let switched_off = words("Enabled").first().is_some_and(|word| word.eq_ignore_ascii_case("no"));
    if switched_off || !words("Types").contains(&"deb") {
        return Vec::new();
    }
    let components: Vec<String> = words("Components").into_iter().map(str::to_owned).collect();
    let keyring = words("Signed-By").first().copied().and_then(keyring_file);
    let source = |uri: &str, suite: &str| Source {
        uri: uri.to_owned(),
        suite: suite.to_owned(),
        components: components.clone(),
        keyring: keyring.clone(),
    };
    let suites = words("Suites");
    let pairs = words("URIs").into_iter().flat_map(|uri| suites.iter().map(move |s| (uri, *s)));
    pairs.map(|(uri, suite)| source(uri, suite)).collect()
}

/// The words of a field, its continuation lines included.
fn field<'a>(lines: &[&'a str], name: &str) -> Option<Vec<&'a str>> {
    let start = lines.iter().position(|line| {
        line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
    })?;
    let (_, first) = lines[start].split_once(':')?;
    let more = lines[start + 1..].iter().take_while(|line| line.starts_with([' ', '\t']));
    Some(first.split_whitespace().chain(more.flat_map(|line| line.split_whitespace())).collect())
}

/// A keyring named by its file. Keys written into the list itself, or named by fingerprint, are
/// left to the keyrings that apt trusts anyway.
fn keyring_file(value: &str) -> Option<String> {
    value.starts_with('/').then(|| value.to_owned())
}

/// The sources of Debian's own release `codename` among `all`, and its backports if asked for.
///
/// Security and update suites are kept: a development package must fit the library that was
/// installed from them.
pub fn for_release(all: &[Source], codename: &str, backports: bool) -> Vec<Source> {
    const OTHER_NAMES: [&str; 5] = ["stable", "oldstable", "testing", "unstable", "sid"];
    let ours = |source: &&Source| {
        let release = source.release();
        let named = release == codename || OTHER_NAMES.contains(&release);
        named && source.components.iter().any(|component| component == "main")
    };
    let mut chosen: Vec<Source> = all.iter().filter(ours).cloned().collect();
    if backports && let Some(archive) = main_archive(&chosen).cloned() {
        chosen.push(Source { suite: format!("{codename}-backports"), ..archive });
    }
    chosen.sort();
    chosen.dedup();
    chosen
}

/// The one that carries the release itself; where several do, an address that ends in `debian`.
pub fn main_archive(sources: &[Source]) -> Option<&Source> {
    let whole = || sources.iter().filter(|source| source.suite == source.release());
    let debian = |source: &&Source| source.uri.trim_end_matches('/').ends_with("/debian");
    whole().find(debian).or_else(|| whole().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
Types: deb deb-src
# a remark
URIs: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://other.example/things
Suites: nodistro
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
";

    fn lines(sources: &[Source]) -> Vec<String> {
        sources.iter().map(Source::line).collect()
    }

    #[test]
    fn deb822_gives_every_suite_of_what_is_switched_on() {
        assert_eq!(
            lines(&deb822_format(DEB822)),
            [
                "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                 http://mirror.example/debian bookworm main contrib",
                "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                 http://mirror.example/debian bookworm-updates main contrib",
                "deb http://mirror.example/debian-security bookworm-security main",
                "deb http://other.example/things nodistro main",
            ]
        );
    }

    #[test]
    fn one_line_gives_binary_sources_alone() {
        let text = "\
# deb http://off.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/etc/apt/ring.gpg] http://mirror.example/debian bookworm main # x
deb\thttp://mirror.example/debian bookworm-updates main non-free
deb http://broken.example
";
        assert_eq!(
            lines(&one_line_format(text)),
            [
                "deb [signed-by=/etc/apt/ring.gpg] http://mirror.example/debian bookworm main",
                "deb http://mirror.example/debian bookworm-updates main non-free",
            ]
        );
    }

    #[test]
    fn a_release_is_chosen_with_its_backports() {
        let suites = |backports| -> Vec<String> {
            let chosen = for_release(&deb822_format(DEB822), "bookworm", backports);
            chosen.into_iter().map(|source| source.suite).collect()
        };
        assert_eq!(
            suites(true),
            ["bookworm", "bookworm-backports", "bookworm-updates", "bookworm-security"]
        );
        assert_eq!(suites(false), ["bookworm", "bookworm-updates", "bookworm-security"]);
    }

    #[test]
    fn backports_come_from_the_archive_and_not_from_a_neighbour() {
        let text =
            "deb http://a.example/php bookworm main\ndeb http://b.example/debian/ bookworm main";
        let chosen = for_release(&one_line_format(text), "bookworm", true);
        let backports = chosen.iter().find(|source| source.suite == "bookworm-backports").unwrap();
        assert_eq!(backports.uri, "http://b.example/debian/");
    }

    #[test]
    fn no_source_of_the_release_gives_nothing() {
        let text = "deb http://b.example/debian trixie main";
        assert!(for_release(&one_line_format(text), "bookworm", true).is_empty());
    }
}
