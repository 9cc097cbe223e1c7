use super::*;

#[test]
fn a_complete_folder_takes_the_place_of_the_one_before() {
    let all = tempfile::tempdir().unwrap();
    let name = all.path().join("pip-1");
    for text in ["first", "second"] {
        let place = all.path().join("env-1");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("x"), text).unwrap();
        put(&place, &name).unwrap();
        assert_eq!(fs::read_to_string(name.join("x")).unwrap(), text);
    }
    assert_eq!(fs::read_dir(all.path()).unwrap().count(), 1);
}

#[test]
fn sizes_are_bounded() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("a")).unwrap();
    fs::write(place.path().join("a/x"), [0; 1000]).unwrap();
    fs::write(place.path().join("y"), [0; 24]).unwrap();
    std::os::unix::fs::symlink("/usr", place.path().join("z")).unwrap();
    let found = size(place.path());
    assert_eq!((found.files, found.bytes - 4), (3, 1024));
    assert_eq!(checked_size(place.path()).unwrap(), 1028);
    let large = Size { bytes: BYTES_MAX + 1, files: 1 };
    assert!(large.problem().unwrap().to_string().contains("more than 2 GiB"));
    assert!(Size { bytes: 1, files: FILES_MAX + 1 }.problem().is_some());
}
