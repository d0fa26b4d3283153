//! What holds for any page; a real run's is kept beside the fixtures.

use super::*;
use crate::analyse::analyse;
use crate::analyse::profile::RunProfiles;
use crate::boot::Accel;
use crate::collect::RunInfo;
use crate::collect::testing::{failed, pairs, plan};
use crate::fault::FailureClass;

fn page(beside: &Beside) -> String {
    let plan = plan(&["base", "patched"], 3);
    let mut records = pairs("patched", &[1.0; 3]);
    for record in records.iter_mut().filter(|record| record.side == "patched") {
        let title = "panic: </script><img src=//x onerror=1>\u{1b}]0;owned\u{7}";
        *record = failed("fork", "patched", record.block, FailureClass::Panic, title);
    }
    let analysis = analyse(&plan, &records);
    let info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
    let report =
        Report { info: &info, plan: &plan, analysis: &analysis, profiles: &RunProfiles::default() };
    html(&report, beside)
}

#[test]
fn what_a_kernel_says_as_it_dies_stays_text() {
    let page = page(&Beside::default());
    assert!(
        page.contains("panic: &lt;/script&gt;&lt;img src=//x onerror=1&gt;\\x1b]0;owned"),
        "{page}"
    );
    assert!(!page.contains("<img") && page.chars().all(|c| c == '\n' || !c.is_control()));
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn a_graph_is_a_document_of_its_own() {
    let graph = FlameGraph {
        title: "patched against <base>".into(),
        key: "key".into(),
        svg: "<?xml?><svg width=\"1\" height=\"398\"><text>\"a&amp;b\u{202e}</text></svg>".into(),
    };
    let page = page(&Beside { graphs: vec![graph], ..Beside::default() });
    assert!(page.contains("height=\"398\" srcdoc=\"&lt;!DOCTYPE html&gt;"), "{page}");
    assert!(page.contains("&lt;svg width=&quot;1&quot;") && page.contains("a&amp;amp;b\\u{202e}"));
    assert!(!page.contains("&lt;?xml") && page.contains("patched against &lt;base&gt;"));
}
