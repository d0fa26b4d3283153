//! Numbers in a command's standard output. Pure.

use kduel_protocol::{Better, MetricSource, MetricSpec};
use regex_lite::Regex;
use serde_json::Value;

/// A metric, ready to be looked for.
pub struct Extractor {
    spec: MetricSpec,
    /// For a metric that is found by regular expression.
    regex: Option<Regex>,
}

impl Extractor {
    /// Fails if the expression is none, or has no group.
    pub fn new(spec: &MetricSpec) -> Result<Self, String> {
        let regex = match &spec.source {
            MetricSource::Regex(pattern) => Some(compile(&spec.name, pattern)?),
            MetricSource::JsonPointer(_) => None,
        };
        Ok(Self { spec: spec.clone(), regex })
    }

    /// Name, unit, direction.
    pub fn describe(&self) -> (&str, &str, Better) {
        (&self.spec.name, &self.spec.unit, self.spec.better)
    }

    /// The metric's value in `output`.
    pub fn read(&self, output: &str) -> Result<f64, String> {
        let name = &self.spec.name;
        let found = match (&self.regex, &self.spec.source) {
            (Some(regex), _) => by_regex(regex, output),
            (None, MetricSource::JsonPointer(pointer)) => by_pointer(pointer, output),
            (None, MetricSource::Regex(_)) => Err("the expression was not compiled".to_owned()),
        };
        let text = found.map_err(|message| format!("metric \"{name}\": {message}"))?;
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(format!("metric \"{name}\": \"{text}\" is no finite number")),
        }
    }
}

fn compile(name: &str, pattern: &str) -> Result<Regex, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("metric \"{name}\": {error}"))?;
    if regex.captures_len() < 2 {
        return Err(format!("metric \"{name}\": \"{pattern}\" has no group around the number"));
    }
    Ok(regex)
}

fn by_regex(regex: &Regex, output: &str) -> Result<String, String> {
    let last = regex.captures_iter(output).last();
    let group = last.as_ref().and_then(|captures| captures.get(1));
    group.map(|group| group.as_str().to_owned()).ok_or_else(|| format!("no match of \"{regex}\""))
}

fn by_pointer(pointer: &str, output: &str) -> Result<String, String> {
    let document: Value =
        serde_json::from_str(output).map_err(|error| format!("the output is no JSON: {error}"))?;
    match document.pointer(pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value) => Ok(value.to_string()),
        None => Err(format!("nothing at {pointer}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extractor(source: MetricSource) -> Result<Extractor, String> {
        let (name, unit) = ("rate".to_owned(), "1/s".to_owned());
        Extractor::new(&MetricSpec { name, unit, better: Better::Higher, source })
    }

    fn read(source: MetricSource, output: &str) -> Result<f64, String> {
        extractor(source)?.read(output)
    }

    #[test]
    fn the_last_match_counts() {
        let source = || MetricSource::Regex(r"rate: ([\d.e+-]+)".to_owned());
        assert_eq!(read(source(), "rate: 1\nrate: 2.5e3\n"), Ok(2500.0));
        assert!(read(source(), "nothing").unwrap_err().contains("no match"));
        assert!(read(source(), "rate: ...").unwrap_err().contains("no finite number"));
        let endless = MetricSource::Regex("(inf)".to_owned());
        assert!(read(endless, "inf").unwrap_err().contains("no finite number"));
    }

    #[test]
    fn a_pattern_without_a_group_is_refused() {
        let message = extractor(MetricSource::Regex("rate".to_owned())).err().unwrap();
        assert!(message.contains("no group"), "{message}");
        assert!(extractor(MetricSource::Regex("(".to_owned())).is_err());
    }

    #[test]
    fn json_is_read_by_pointer() {
        let source = || MetricSource::JsonPointer("/jobs/0/iops".to_owned());
        assert_eq!(read(source(), r#"{"jobs":[{"iops":12.5}]}"#), Ok(12.5));
        assert_eq!(read(source(), r#"{"jobs":[{"iops":"7"}]}"#), Ok(7.0));
        assert!(read(source(), r#"{"jobs":[{"iops":null}]}"#).is_err());
        assert!(read(source(), "{}").unwrap_err().contains("nothing at /jobs/0/iops"));
        assert!(read(source(), "x").unwrap_err().contains("no JSON"));
    }
}
