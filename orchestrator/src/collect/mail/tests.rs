use super::*;

fn texts(input: &str) -> Vec<Vec<(usize, String)>> {
    let raw = raw_lines(input.as_bytes());
    let messages = messages(&raw);
    let lines = |lines: &Vec<Line<'_>>| {
        lines.iter().map(|line| (line.number, line.text.clone().into_owned())).collect()
    };
    messages
        .iter()
        .flat_map(|message| open(message).texts.iter().map(lines).collect::<Vec<_>>())
        .collect()
}

#[test]
fn text_that_is_no_mail_stays_as_it_is() {
    let lines = texts("Elapsed: 1\r\n> quoted\n\nFrom here on\n");
    let expected = [(1, "Elapsed: 1"), (2, "quoted"), (3, ""), (4, "From here on")];
    assert_eq!(lines, [expected.map(|(number, text)| (number, text.to_owned()))]);
}

#[test]
fn a_mailbox_is_parted_at_from_lines_and_keeps_the_lines_numbers() {
    let mail = |text: &str| format!("Subject: s\nFrom: a\n\n{text}\nFrom the start\n\n");
    let from = "From a Mon Jan  1 10:00:00 2024\n";
    let lines = texts(&format!("{from}{}{from}{}", mail("one"), mail("two")));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0][0], (5, "one".to_owned()));
    assert_eq!(lines[1][0], (12, "two".to_owned()));
    assert_eq!(lines[1][1], (13, "From the start".to_owned()));
}

#[test]
fn quoted_printable_is_undone_and_each_byte_knows_its_line() {
    let mail = "Subject: =?utf-8?q?a_=C2=B1?= =?utf-8?b?Yg==?=\nMIME-Version: 1.0\nContent-Type: text/plain;\n \
                charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n> 1.5=20=\n2.5 =C2=B1 3=3D\nend\n";
    let raw = raw_lines(mail.as_bytes());
    let message = open(&raw);
    assert_eq!(message.subject.as_deref(), Some("a ±b"));
    let line = &message.texts[0][0];
    assert_eq!(line.text, "1.5 2.5 ± 3=");
    assert_eq!(
        (line.number_at(0), line.number_at(3), line.number_at(4), line.last()),
        (7, 7, 8, 8)
    );
    assert_eq!(message.texts[0][1].text, "end");
    assert_eq!(message.texts[0][1].number, 9);
}

#[test]
fn parts_of_text_are_read_and_the_others_told() {
    let mail = "From: a\nSubject: b\nContent-Type: multipart/mixed; boundary=\"xx\"\n\npreamble\n--xx\n\none\n--xx\n\
                Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\ndHdvCnRoc\nmVlCg==\n--xx\n\
                Content-Type: image/png\n\nAAAA\n--xx--\nafter\n";
    let raw = raw_lines(mail.as_bytes());
    let message = open(&raw);
    assert_eq!(message.texts[0][0], Line::new(8, "one"));
    assert_eq!(message.texts[1][0], Line::new(13, "two"));
    assert_eq!(message.texts[1][1].text, "three");
    assert_eq!(message.texts[1][1].last(), 14);
    let why = "part of type image/png".to_owned();
    assert_eq!(message.left, [Left { first: 18, last: 18, why }]);
}

#[test]
fn bytes_that_are_no_utf8_are_latin_1() {
    let raw = raw_lines(b"45 \xb1 8%\n");
    assert_eq!(open(&raw).texts[0][0].text, "45 \u{b1} 8%");
}

#[test]
fn what_is_no_text_or_too_long_is_refused() {
    assert!(matches!(read("x", &b"\x7fELF\0\0"[..]), Err(InputError::Binary(_))));
    let endless = std::io::repeat(b'a');
    assert!(matches!(read("x", endless), Err(InputError::TooLong(_))));
    let lines = "\n".repeat(MAX_LINES + 1);
    assert!(matches!(read("x", lines.as_bytes()), Err(InputError::TooManyLines(_))));
}
