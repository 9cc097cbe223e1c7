use std::io::Write as _;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const CONFIG: &str = "name = \"tiny\"\nrun = \"sh /installed-agent/go.sh\"\n";

fn zip(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes, mode) in files {
        if mode & 0o170_000 == 0o120_000 {
            zip.add_symlink(*path, "/etc/passwd", SimpleFileOptions::default()).unwrap();
            continue;
        }
        zip.start_file(*path, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read(files: &[(&str, &[u8], u32)]) -> Result<CustomAgent, Refusal> {
    CustomAgent::read(Cursor::new(zip(files)))
}

fn config(text: &str) -> Result<CustomAgent, Refusal> {
    read(&[("agent.toml", text.as_bytes(), 0o644), ("install.sh", b"true\n", 0o644)])
}

#[test]
fn an_agent_has_a_name_a_command_and_files() {
    let text = "name = \"my.agent_1-x\"\nversion = \"1.0+b\"\nrun = \"python3 a.py\"\ninstall = \"./install.sh\"\n\
        install_timeout_sec = 12.5\n[env]\nMODE = \"${MODE:-fast}\"\nWHO = \"${WHO}\"\nTEXT = \"plain\"\n";
    let agent = config(text).unwrap();
    assert_eq!((agent.name.as_str(), agent.title().as_str()), ("my.agent_1-x", "my.agent_1-x@1.0+b"));
    assert_eq!((agent.run.as_str(), agent.install.as_deref()), ("python3 a.py", Some("install.sh")));
    assert_eq!(agent.install_timeout, Duration::from_millis(12_500));
    assert_eq!(agent.env.required().collect::<Vec<_>>(), ["WHO"]);
    let paths: Vec<_> = agent.files.iter().map(|file| (file.path.as_str(), file.is_executable)).collect();
    assert_eq!(paths, [("agent.toml", false), ("install.sh", true)]);
    let least = config(CONFIG).unwrap();
    assert_eq!(
        (least.title().as_str(), least.install, least.install_timeout),
        ("tiny", None, INSTALL_TIMEOUT)
    );
    assert!(least.env.0.is_empty());
}

#[test]
fn the_hash_is_that_of_the_files_alone() {
    let at_root = config(CONFIG).unwrap();
    let script: &[u8] = b"true\n";
    let in_folder =
        read(&[("x/install.sh", script, 0o755), ("x/agent.toml", CONFIG.as_bytes(), 0o600)]).unwrap();
    assert_eq!((at_root.hash, &at_root.files), (in_folder.hash, &in_folder.files));
    let other = read(&[("agent.toml", CONFIG.as_bytes(), 0o644), ("install.sh", b"false\n", 0o644)]).unwrap();
    assert_ne!(at_root.hash, other.hash);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, code, line, part) in [
        ("name = \"a\"\n", "missing_field", Some(1), "`run` is missing"),
        ("run = \"x\"\n", "missing_field", Some(1), "`name` is missing"),
        ("name = \"a\"\nrun = ", "invalid_syntax", Some(2), "not valid TOML"),
        (
            "name = \"a\"\nrun = \"x\"\n\nmodel = \"m\"\n",
            "unknown_key",
            Some(4),
            "`model` is not known; the keys are `name`",
        ),
        ("name = \"A b\"\nrun = \"x\"\n", "invalid_value", Some(1), "`A b`"),
        ("name = \"\"\nrun = \"x\"\n", "invalid_value", Some(1), "1 to 64"),
        ("name = \"a\"\nversion = \"1 0\"\nrun = \"x\"\n", "invalid_value", Some(2), "`1 0`"),
        ("name = \"a\"\nrun = \" \"\n", "invalid_value", Some(2), "a shell command"),
        ("name = \"a\"\nrun = [\"x\"]\n", "wrong_type", Some(2), "a string, not a list"),
        ("name = \"a\"\nrun = \"x\"\ninstall = \"setup.sh\"\n", "no_install_script", Some(3), "`setup.sh`"),
        (
            "name = \"a\"\nrun = \"x\"\ninstall = \"../install.sh\"\n",
            "no_install_script",
            Some(3),
            "not a file",
        ),
        ("name = \"a\"\nrun = \"x\"\ninstall_timeout_sec = 0\n", "invalid_value", Some(3), "above 0"),
        ("name = \"a\"\nrun = \"x\"\ninstall_timeout_sec = 3601\n", "invalid_value", Some(3), "up to 3600"),
        ("name = \"a\"\nrun = \"x\"\n[env]\n\"A B\" = \"1\"\n", "invalid_value", Some(4), "`env.A B`"),
        ("name = \"a\"\nrun = \"x\"\n[env]\nA = 1\n", "wrong_type", Some(4), "`env.A` must be a string"),
    ] {
        let refusal = config(text).unwrap_err();
        let place = refusal.place.clone().unwrap();
        assert_eq!((refusal.code(), place.file.as_str(), place.line), (code, "agent.toml", line), "{text}");
        assert!(refusal.to_string().contains(part), "{refusal}");
    }
}

#[test]
fn other_archives_are_refused() {
    let config = CONFIG.as_bytes();
    let large = vec![b'\n'; AGENT_BYTES_MAX as usize / 500 + 1];
    let many: Vec<(String, &[u8])> = (0..=ENTRIES_MAX).map(|number| (format!("f{number}"), config)).collect();
    let many: Vec<(&str, &[u8], u32)> =
        many.iter().map(|(path, bytes)| (path.as_str(), *bytes, 0o644)).collect();
    for (files, code) in [
        (vec![], "no_agent"),
        (vec![("a/b/agent.toml", config, 0o644)], "no_agent"),
        (vec![("agent.tml", config, 0o644)], "no_agent"),
        (vec![("a/agent.toml", config, 0o644), ("b/x", large.as_slice(), 0o644)], "outside_agent"),
        (vec![("agent.toml", config, 0o120_777)], "not_a_regular_file"),
        (vec![("agent.toml", config, 0o644), ("../x", config, 0o644)], "unsafe_path"),
        (many, "too_many_entries"),
    ] {
        assert_eq!(read(&files).unwrap_err().code(), code);
    }
    assert_eq!(CustomAgent::read(Cursor::new(b"name = 1".to_vec())).unwrap_err().code(), "not_zip");
    let long = vec![0; AGENT_ARCHIVE_BYTES_MAX as usize + 1];
    let refusal = CustomAgent::read(Cursor::new(long)).unwrap_err();
    assert_eq!(refusal.code(), "agent_too_large");
    assert!(refusal.to_string().contains("4194304 bytes as a ZIP archive"), "{refusal}");
}

#[test]
fn files_are_too_large_together() {
    // Less compressible than zeros, whose ratio would be refused first.
    let part: Vec<u8> =
        (0..AGENT_BYTES_MAX / 2 + 1).map(|at| if at % 64 == 0 { (at / 64) as u8 } else { 0 }).collect();
    let files = [("agent.toml", CONFIG.as_bytes(), 0o644), ("a", &part, 0o644), ("b", &part, 0o644)];
    let refusal = read(&files).unwrap_err();
    assert_eq!(refusal.code(), "agent_too_large", "{refusal}");
    assert!(refusal.to_string().contains("in its files"), "{refusal}");
}
