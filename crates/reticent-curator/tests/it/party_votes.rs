//! Votes of parties as files: what is read, what is refused by name, and what one party can do to a sum.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::engine::Engine;
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::{Map, PARTY_STEPS, ProductTarget, QueryShape, SumQuery, VOTE_STEPS, VoteRule};
use reticent_core::schema::{Class, Schema};
use reticent_curator::file_fingerprint::file_fingerprint;
use reticent_curator::party_votes::{Ballot, PartyVotes, Roster, VoteForm};
use reticent_testkit::{generate, reveal};
use tempfile::TempDir;

const ROWS: usize = 4;

fn ballot() -> Ballot {
    let class = |name: &str| Class { name: name.to_owned(), spellings: vec![name.to_owned()] };
    Ballot::new(&[class("no"), class("yes")], ROWS, "0".repeat(64))
}

fn schema() -> Schema {
    generate::schema(1, 0, "unit = \"row\"\nadjacency = \"party\"")
}

fn write(folder: &Path, party: &str, shares: [f64; ROWS]) {
    let shares: Vec<f64> = shares.iter().flat_map(|share| [1.0 - share, *share]).collect();
    fs::write(folder.join(format!("{party}.csv")), ballot().write(party, VoteForm::Probabilities, &shares))
        .expect("writes");
}

fn read(folder: &Path, list: &str) -> Result<PartyVotes, String> {
    let roster = Roster::parse(list).expect("legal");
    PartyVotes::read(folder, &roster, &ballot(), &schema()).map_err(|error| error.to_string())
}

fn product(values: Vec<i32>) -> SumQuery {
    let matrix = Arc::new(PublicMatrix::new(values.len() / ROWS, values).expect("short"));
    let map = Map::MatrixProduct {
        columns: matrix.columns() as u32,
        outputs: 1,
        target: ProductTarget::Class,
        label_low: 0,
        label_high: VOTE_STEPS,
        rows: ROWS as u64,
        row_norm_square: matrix.row_norm_square(),
        eigenvalue: matrix.eigenvalue_bound().expect("small"),
    };
    SumQuery::of_matrix(QueryShape::new(map, PrivacyUnit::Row, ROWS as u64).expect("small"), matrix).expect("fits")
}

#[test]
fn votes_of_all_parties_are_added_up() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "a", [1.0, 0.0, 0.5, 0.25]);
    write(folder.path(), "b", [1.0, 1.0, 0.0, 0.0]);
    fs::write(folder.path().join(".hidden"), "left alone").expect("writes");
    let votes = read(folder.path(), "a\nb\n").expect("legal");
    assert_eq!(votes.parties(), 2);
    let sum = votes.exact_sum(&product(vec![1, 10, 100, 1000])).expect("answers");
    assert_eq!(reveal(sum), [2 * 4096 + 10 * 4096 + 100 * 2048 + 1000 * 1024]);
}

#[test]
fn missing_strange_and_malformed_files_are_refused_by_name() {
    let folder = TempDir::new().expect("a folder");
    let refused = |list: &str, parts: &[&str]| {
        let message = read(folder.path(), list).err().expect("refused");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    write(folder.path(), "a", [0.5; ROWS]);
    refused("a\nb\n", &["party b", "b.csv", "no file"]);
    write(folder.path(), "b", [0.5; ROWS]);
    refused("a\n", &["b.csv", "no party of the list"]);
    // One party's file under another's name.
    fs::copy(folder.path().join("a.csv"), folder.path().join("b.csv")).expect("copies");
    refused("a\nb\n", &["party b", "line 2", "not the file of this party"]);
    let hostile: [&[u8]; 6] =
        [b"", b"\xff\xfe\x00", &[b'1'; 100_000], b"\x80\x04\x95 pickle", b"# reticent votes 1\n", b"PAR1"];
    for bytes in hostile {
        fs::write(folder.path().join("b.csv"), bytes).expect("writes");
        refused("a\nb\n", &["party b", "b.csv"]);
    }
    fs::remove_file(folder.path().join("b.csv")).expect("removes");
    fs::create_dir(folder.path().join("b.csv")).expect("makes");
    refused("a\nb\n", &["party b", "no ordinary file"]);
}

/// Whatever a party's votes are, the sum moves by no more than the sensitivity that is charged.
#[test]
fn one_party_moves_a_sum_by_no_more_than_its_share() {
    let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Party };
    let others = vec![vec![1234; ROWS], vec![0; ROWS]];
    let queries =
        [product(vec![3, -2, 5, 7, 1, 0, 0, 9]), minimum(VoteRule::Soft), minimum(VoteRule::Majority), vectors()];
    for query in &queries {
        let bound = query.shape().sensitivity(&relation).expect("finite").get();
        let answers: Vec<Vec<i128>> =
            [vec![0; ROWS], vec![u16::MAX; ROWS], vec![u16::MAX, 0, u16::MAX, 0], vec![4096, 0, 0, 4096]]
                .into_iter()
                .map(|hostile| {
                    let votes = [others.clone(), vec![hostile]].concat();
                    let engine = PartyVotes::new(&schema(), 1, ROWS, votes);
                    reveal(engine.exact_sum(query).expect("answers"))
                })
                .collect();
        for one in &answers {
            for other in &answers {
                let square: u128 = one.iter().zip(other).map(|(one, other)| (one - other).unsigned_abs().pow(2)).sum();
                assert!(square <= bound, "{:?}: {square} > {bound}", query.shape().map());
            }
        }
    }
}

/// The same with many classes and votes from memory: all the classes of all rows at once are one vote a row.
#[test]
fn votes_for_all_classes_at_once_move_a_minimum_by_no_more_than_one_each() {
    const CLASSES: u32 = 10;
    let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Party };
    // Rows that point the same way, and a penalty beside which the loss hardly curves: as far as a minimum can move.
    let map =
        Map::PartyMinimum { columns: 1, outputs: CLASSES, rule: VoteRule::Soft, penalty: 16 * PARTY_STEPS, parties: 3 };
    let shape = QueryShape::new(map, PrivacyUnit::Row, ROWS as u64).expect("small");
    let same = PublicMatrix::new(1, vec![MATRIX_NORM_MAX; ROWS]).expect("of norm 1");
    let query = SumQuery::of_matrix(shape, Arc::new(same)).expect("fits");
    let bound = query.shape().sensitivity(&relation).expect("finite").get();
    let votes = ROWS * CLASSES as usize;
    let one_class: Vec<u16> = (0..votes).map(|place| if place % CLASSES as usize == 3 { 4096 } else { 0 }).collect();
    let answers: Vec<Vec<i128>> = [vec![0; votes], vec![u16::MAX; votes], vec![4096; votes], one_class]
        .into_iter()
        .map(|hostile| {
            let engine =
                PartyVotes::new(&schema(), CLASSES as usize, ROWS, vec![vec![400; votes], vec![0; votes], hostile]);
            reveal(engine.exact_sum(&query).expect("answers"))
        })
        .collect();
    let moved = |one: &[i128], other: &[i128]| -> u128 {
        one.iter().zip(other).map(|(one, other)| (one - other).unsigned_abs().pow(2)).sum()
    };
    for one in &answers {
        for other in &answers {
            assert!(moved(one, other) <= bound, "{} > {bound}", moved(one, other));
        }
    }
    assert_eq!(moved(&answers[1], &answers[2]), 0, "what is beyond a whole vote does not count");
    assert!(8 * moved(&answers[0], &answers[1]) > bound, "a whole vote moves it by nearly half of what is charged");
}

fn unit_rows() -> Arc<PublicMatrix> {
    let whole = 1 << 19;
    Arc::new(PublicMatrix::new(2, vec![whole, whole, whole, -whole, whole, 0, whole, whole / 2]).expect("short"))
}

fn minimum(rule: VoteRule) -> SumQuery {
    let map = Map::PartyMinimum { columns: 2, outputs: 1, rule, penalty: 1 << 14, parties: 3 };
    SumQuery::of_matrix(QueryShape::new(map, PrivacyUnit::Row, ROWS as u64).expect("small"), unit_rows()).expect("fits")
}

fn vectors() -> SumQuery {
    let map = Map::PartyVectors { columns: 2, outputs: 1, penalty: 1 << 10, norm: 1 << 20 };
    SumQuery::of_matrix(QueryShape::new(map, PrivacyUnit::Row, ROWS as u64).expect("small"), unit_rows()).expect("fits")
}

/// Golden minimum from SciPy: see `testdata/golden/soft_label_regression.py`.
#[test]
fn the_minimum_is_that_of_an_independent_solver() {
    let engine =
        PartyVotes::new(&schema(), 1, ROWS, vec![vec![4096, 0, 2048, 1024], vec![4096, 1024, 0, 4096], vec![0; ROWS]]);
    let found = reveal(engine.exact_sum(&minimum(VoteRule::Soft)).expect("answers"));
    for (steps, expected) in found.iter().zip(GOLDEN_MINIMUM) {
        let weight = *steps as f64 / f64::from(1 << 24);
        assert!((weight - expected).abs() < 1e-5, "{weight} is not {expected}");
    }
}

/// A party's vector is the minimum for its own votes, on a coarser lattice.
#[test]
fn the_vector_of_a_party_is_the_minimum_for_its_votes() {
    let engine = PartyVotes::new(&schema(), 1, ROWS, vec![vec![4096, 1024, 0, 2048]]);
    let penalty = 1 << 14;
    let rows = QueryShape::new(
        Map::PartyMinimum { columns: 2, outputs: 1, rule: VoteRule::Soft, penalty, parties: 1 },
        PrivacyUnit::Row,
        ROWS as u64,
    );
    let minimum = SumQuery::of_matrix(rows.expect("small"), unit_rows()).expect("fits");
    let rows = QueryShape::new(
        Map::PartyVectors { columns: 2, outputs: 1, penalty, norm: 1 << 24 },
        PrivacyUnit::Row,
        ROWS as u64,
    );
    let vector = SumQuery::of_matrix(rows.expect("small"), unit_rows()).expect("fits");
    let of = |query| reveal(engine.exact_sum(query).expect("answers"));
    for (vector, minimum) in of(&vector).iter().zip(of(&minimum)) {
        let (vector, minimum) = (*vector as f64 / f64::from(1 << 20), minimum as f64 / f64::from(1 << 24));
        assert!(minimum.abs() > 0.1 && (vector - minimum).abs() < 1e-4, "{vector} is not {minimum}");
    }
}

const GOLDEN_MINIMUM: [f64; 2] = [-1.338531984, 1.683198304];

#[test]
fn questions_about_other_parties_or_rows_are_not_answered() {
    let engine = PartyVotes::new(&schema(), 1, ROWS, vec![vec![0; ROWS]]);
    assert!(engine.exact_sum(&minimum(VoteRule::Soft)).is_err(), "planned for three parties");
    let engine = PartyVotes::new(&schema(), 1, ROWS - 1, vec![vec![0; ROWS - 1]; 3]);
    assert!(engine.exact_sum(&minimum(VoteRule::Soft)).is_err(), "planned for other rows");
}

#[test]
fn the_fingerprint_is_that_of_sha256sum() {
    let folder = TempDir::new().expect("a folder");
    let place = folder.path().join("rows.csv");
    fs::write(&place, "abc").expect("writes");
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(file_fingerprint(&place).expect("reads"), expected);
}
