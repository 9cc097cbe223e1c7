#[test]
fn zero() {
    assert_eq!(calc::add(0, 0), 0);
}
