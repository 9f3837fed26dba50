//! Tests of the votes file: what is accepted, and every way in which one is refused by name.

use reticent_core::query::VOTE_STEPS;
use reticent_core::schema::{Class, Schema};

use super::ballot::fields;
use super::{Ballot, PartyVotes, Roster, RosterError, VoteForm};

fn ballot() -> Ballot {
    let class = |name: &str| Class { name: name.to_owned(), spellings: vec![name.to_owned()] };
    Ballot::new(&[class("a"), class("b, or c"), class("d")], 3, "ab".repeat(32))
}

fn preamble() -> String {
    format!("# reticent votes 1\n# party: north\n# auxiliary: {}\n", "ab".repeat(32))
}

fn problem(rest: &str) -> (usize, String) {
    ballot().parse("north", &format!("{}{rest}", preamble())).expect_err("refused")
}

#[test]
fn what_is_written_reads_back() {
    let shares = [0.2, 0.5, 0.3, 1.0, 0.0, 0.0, 0.25, 0.25, 0.5];
    let ballot = ballot();
    let classes = ballot.parse("north", &ballot.write("north", VoteForm::Class, &shares)).expect("legal");
    assert_eq!(classes, [0, 4096, 0, 4096, 0, 0, 0, 0, 4096]);
    let soft = ballot.parse("north", &ballot.write("north", VoteForm::Probabilities, &shares)).expect("legal");
    for (vote, share) in soft.iter().zip(shares) {
        assert!((f64::from(*vote) - share * 4096.0).abs() <= 1.0, "{soft:?}");
    }
    assert!(soft.chunks(3).all(|row| row.iter().map(|vote| i32::from(*vote)).sum::<i32>() <= VOTE_STEPS));
    // Columns in any order, Windows line ends, a byte order mark.
    let text = format!("\u{feff}{}row,d,a,\"b, or c\"\n1,1,0,0\n2,0,1,0\n3,0,0,1\n", preamble()).replace('\n', "\r\n");
    assert_eq!(ballot.parse("north", &text).expect("legal"), [0, 0, 4096, 4096, 0, 0, 0, 4096, 0]);
    let blank = ballot.parse("north", &ballot.blank("north")).expect_err("not filled in");
    assert_eq!(blank, (5, "the vote is none of the schema's classes".to_owned()));
}

#[test]
fn two_classes_are_one_integer_a_row() {
    let class = |name: &str| Class { name: name.to_owned(), spellings: vec![name.to_owned(), format!("{name}.")] };
    let ballot = Ballot::new(&[class("no"), class("yes")], 2, String::new());
    let text = "# reticent votes 1\n# party: p\n# auxiliary: \nrow,no,yes\n1,0.25,0.75\n2,1,0\n";
    assert_eq!(ballot.parse("p", text).expect("legal"), [3072, 0]);
    let text = "# reticent votes 1\n# party: p\n# auxiliary: \nrow,class\n1,yes.\n2,no\n";
    assert_eq!(ballot.parse("p", text).expect("spellings count"), [4096, 0]);
    // As another program writes numbers and booleans.
    for (names, written) in [(["0", "1"], "1,1.0\n2,0.0\n"), (["false", "true"], "1,True\n2,False\n")] {
        let classes = names.map(|name| Class { name: name.to_owned(), spellings: vec![name.to_owned()] });
        let text = format!("# reticent votes 1\n# party: p\n# auxiliary: \nrow,class\n{written}");
        assert_eq!(Ballot::new(&classes, 2, String::new()).parse("p", &text).expect("a spelling"), [4096, 0]);
    }
}

#[test]
fn every_defect_is_refused_with_its_line() {
    let refused = |rest: &str, line: usize, part: &str| {
        let (found, message) = problem(rest);
        assert!(found == line && message.contains(part), "{rest:?}: line {found}: {message}");
    };
    refused("", 4, "names of the columns");
    refused("row,class\n", 5, "the vote on row 1 is missing");
    refused("row,class\n1,a\n2,d\n", 7, "the vote on row 3 is missing");
    refused("row,class\n1,a\n1,a\n3,a\n", 6, "the vote on row 2 belongs here");
    refused("row,class\n1,a\n2,a\n3,a\n4,a\n", 8, "only 3 rows");
    refused("row,class\n1,a\n2,e\n3,a\n", 6, "none of the schema's classes");
    refused("row,class\n1,a,a\n", 5, "2 values belong here");
    refused("row,class\n1,\"a\n", 5, "quotation");
    refused("row,a,d\n1,0,1\n", 4, "a column for each of the classes");
    refused("row,a,a,d\n1,0,0,1\n", 4, "a column for each of the classes");
    refused("id,class\n1,a\n", 4, "the columns are");
    for share in ["nan", "inf", "-0.1", "1.1", "1e999", "", "0x1"] {
        refused(&format!("row,a,\"b, or c\",d\n1,{share},0,0\n"), 5, "a number between 0 and 1");
    }
    refused("row,a,\"b, or c\",d\n1,1,1,1\n", 5, "add up to 1");
    refused("row,a,\"b, or c\",d\n1,0,0,0\n", 5, "add up to 1");
}

#[test]
fn a_file_of_another_party_question_or_kind_is_refused() {
    let ballot = ballot();
    let good = ballot.write("north", VoteForm::Class, &[1.0; 9]);
    let refused = |party: &str, text: &str, part: &str| {
        let (_, message) = ballot.parse(party, text).expect_err("refused");
        assert!(message.contains(part), "{message}");
    };
    refused("south", &good, "not the file of this party");
    refused("north", &good.replace("abab", "cdcd"), "about another auxiliary file");
    refused("north", &good.replace("votes 1", "votes 2"), "no votes file of version 1");
    refused("north", "", "no votes file of version 1");
    refused("north", "\u{80}PK\u{3}\u{4}", "no votes file of version 1");
}

#[test]
fn lists_of_parties_are_checked() {
    let roster = Roster::parse("north\n\n# a comment\nsouth-2\n").expect("legal");
    assert_eq!(roster.parties(), ["north", "south-2"]);
    assert_eq!(Roster::parse("\u{feff}north\n\nsouth-2\n"), Ok(roster), "a byte-order mark is no part of a name");
    assert_eq!(Roster::parse(""), Err(RosterError::Empty));
    assert_eq!(Roster::parse("a\nA\n"), Err(RosterError::Duplicate { line: 2, party: "A".to_owned() }));
    for name in ["../etc", ".hidden", "a b", "a/b", &"x".repeat(65), "ü"] {
        assert_eq!(Roster::parse(name), Err(RosterError::Name { line: 1 }), "{name}");
    }
}

#[test]
fn votes_are_counted_by_preferred_classes() {
    let schema = Schema::from_text(
        "[privacy]\nunit = \"row\"\nadjacency = \"party\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\na = { bounds = [0, 1] }\n",
    )
    .expect("legal");
    let votes = vec![
        vec![4096, 0, 0, 0, 2000, 2096, 1365, 1365, 1365, 0, 0, 0],
        vec![0, 4096, 0, 0, 0, 4096, 0, 4096, 0, 0, 1, 0],
        vec![0, 4096, 0, 4096, 0, 0, 0, 0, 4096, 0, 1, 0],
    ];
    let parties = PartyVotes::new(&schema, 3, 4, votes);
    // Of equals the first: the first party prefers class 0 on rows 3 and 4, on row 3 each class has one party.
    let expected = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    assert_eq!(parties.majority_labels(), expected.concat());
    // Half a vote is none for the last of two classes, and half of the parties are no majority.
    let votes = vec![vec![2049, 2048, 4096], vec![4096, 2048, 0]];
    assert_eq!(PartyVotes::new(&schema, 1, 3, votes).majority_labels(), [1.0, 0.0, 0.0]);
}

#[test]
fn fields_are_split_at_commas_beyond_quotations() {
    let split = |line: &str| fields(line).expect("closed");
    assert_eq!(split("a,\"b, \"\"c\"\"\",d\"e\"\r"), ["a", "b, \"c\"", "d\"e\""]);
    assert_eq!(split(",\"\""), ["", ""]);
    assert_eq!(fields("a,\"b\"\""), None);
}

#[test]
fn shares_that_were_rounded_are_brought_to_1() {
    let text = format!("{}row,a,\"b, or c\",d\n1,0.333,0.333,0.333\n2,1,0,0\n3,0,0,1\n", preamble());
    assert_eq!(ballot().parse("north", &text).expect("legal")[..3], [1365; 3]);
}

#[test]
fn a_file_has_room_for_names_or_shares() {
    assert_eq!(ballot().bytes_max(), 1024 + (2 * 9 + 3 * 3) + 3 * (32 + 3 * 32));
    let class = |name: String| Class { name: name.clone(), spellings: vec![name] };
    let names = Ballot::new(&[class("a".repeat(100)), class("b".repeat(50))], 7, String::new());
    assert_eq!(names.bytes_max(), 1024 + 306 + 7 * (32 + 306));
}
