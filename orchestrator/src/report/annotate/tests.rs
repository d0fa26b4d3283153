//! Annotations of real counts, as text and as a page.

use super::*;
use crate::analyse::annotate::testing::fixture;
use crate::analyse::annotate::{Annotation, Scope, Wanted};
use crate::report::Look;

fn annotation(function: &str) -> Annotation {
    fixture().annotate(&Wanted::parse(function), Scope::Own).unwrap()
}

fn text(annotation: &Annotation) -> String {
    annotation_text(annotation, Look { width: 80, colour: false })
}

#[test]
fn both_sides_as_text() {
    let text = text(&annotation("pgd_alloc"));
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    insta::assert_snapshot!(text);
}

#[test]
fn a_small_function_as_text_and_page() {
    let annotation = annotation("__put_user_4");
    insta::assert_snapshot!(text(&annotation));
    let page = annotation_html(&annotation);
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    insta::assert_snapshot!(format!("{head}<style>(style)</style>{body}"));
}

#[test]
fn one_side_alone_has_no_marks() {
    let mut annotation = annotation("__put_user_4");
    annotation.sides.truncate(1);
    insta::assert_snapshot!(text(&annotation));
    assert!(annotation_html(&annotation).contains("<table class=\"list one\">"));
}

#[test]
fn a_function_of_one_side_only_is_shown_and_the_other_said() {
    let mut annotation = annotation("__put_user_4");
    annotation.sides[0].listing = None;
    let text = text(&annotation);
    assert!(text.contains("a          none\n"), "{text}");
    assert!(
        text.lines().skip(10).all(|line| line.starts_with('+') || line.contains("...")),
        "{text}"
    );
    assert!(annotation_html(&annotation).contains("no such function"));
}

#[test]
fn sources_are_told_where_they_change() {
    let mut annotation = annotation("__put_user_4");
    for side in &mut annotation.sides {
        let start = side.listing.as_ref().unwrap().function.range.start;
        side.listing.as_mut().unwrap().find_sources(|address| {
            let line = if address - start < 0x10 { 44 } else { 45 };
            Some(format!("arch/x86/lib/putuser.S:{line}"))
        });
    }
    let text = text(&annotation);
    let told = |line: &str| text.matches(&format!("arch/x86/lib/putuser.S:{line}:")).count();
    assert_eq!((told("44"), told("45")), (2, 1), "a has no line 45: {text}");
    assert!(annotation_html(&annotation).contains("<tr class=\"s\">"));
}

#[test]
fn nothing_a_guest_calls_itself_leaves_raw() {
    let mut annotation = annotation("__put_user_4");
    let odd = "<script>\x1b[2J&\"'\u{202e}".to_owned();
    annotation.function.clone_from(&odd);
    annotation.notes.push(odd.clone());
    for side in &mut annotation.sides {
        side.name.clone_from(&odd);
        side.release.clone_from(&odd);
        for line in &mut side.listing.as_mut().unwrap().code {
            line.text.clone_from(&odd);
            line.source = Some(odd.clone());
        }
    }
    let (text, page) = (text(&annotation), annotation_html(&annotation));
    for raw in ["\x1b", "\u{202e}"] {
        assert!(!text.contains(raw) && !page.contains(raw));
    }
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;\\x1b[2J&amp;&quot;&#39;"));
    assert!(!page.contains("http") && !page.contains("src="), "a page needs nothing else");
}
