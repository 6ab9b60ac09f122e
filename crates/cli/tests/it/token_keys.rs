//! Tests of `bywash token-keys`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use bywash_token::{KeyFileError, Secrets};

use crate::binary::bywash;
use crate::folder::Folder;

fn keys(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn it_prints_a_file_with_one_key_and_another_one_each_time() {
    let [one, other] = [(); 2].map(|()| bywash(&["token-keys"]));
    assert_eq!((one.code, one.err.as_str()), (Some(0), ""));
    assert!(Secrets::parse(&one.out).is_ok() && keys(&one.out).len() == 1, "{}", one.out);
    assert_ne!(keys(&one.out), keys(&other.out));
}

#[test]
fn a_new_file_is_for_its_owner_alone_and_an_old_one_stays() {
    let folder = Folder::new();
    let path = folder.path("token.keys");
    let made = bywash(&["token-keys", &path]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), ""));
    assert_eq!(mode(&path), 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(Secrets::parse(&text).is_ok());
    let again = bywash(&["token-keys", &path]);
    assert_eq!(again.code, Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_key_is_exchanged_in_place_and_the_one_before_stays_second() {
    let folder = Folder::new();
    let (path, link) = (folder.path("token.keys"), folder.path("link"));
    bywash(&["token-keys", &path]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let made = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{made}# of the shop\n")).unwrap();
    symlink("token.keys", &link).unwrap();
    let first = fs::read_to_string(&path).unwrap();
    for round in 0..2 {
        let before = fs::read_to_string(&path).unwrap();
        let turned = bywash(&["token-keys", "--rotate", &link]);
        assert_eq!((turned.code, turned.out.as_str()), (Some(0), ""), "{}", turned.err);
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!((keys(&after).len(), keys(&after)[1]), (2, keys(&before)[0]));
        assert_eq!(after.contains(keys(&first)[0]), round == 0, "the third is gone");
        assert!(after.ends_with("# of the shop\n"), "comments stay");
        assert!(!turned.err.contains(keys(&after)[0]), "a key is not shown");
    }
    assert_eq!(mode(&path), 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let left: Vec<_> = fs::read_dir(folder.path("")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn what_is_no_file_of_keys_is_left_as_it_is() {
    let folder = Folder::new();
    let key = format!("{}\n", "0a".repeat(32));
    let no_key = KeyFileError::NoKey { line: 1 }.to_string();
    for (text, mode, why) in [
        ("version = 1\n".to_owned(), 0o600, no_key.as_str()),
        (key.clone(), 0o644, "its mode is 644"),
        (format!("{key}#{}", "x".repeat(4096)), 0o600, "more than 4096 bytes"),
        (format!("{key}#{}", "x".repeat(4000)), 0o600, "with another key"),
    ] {
        let path = folder.file("bywash.toml", &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let outcome = bywash(&["token-keys", "--rotate", &path]);
        assert!(outcome.code == Some(1) && outcome.err.contains(why), "{}", outcome.err);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let missing = bywash(&["token-keys", "--rotate", &folder.path("none")]);
    assert_eq!(missing.code, Some(1));
    assert_eq!(bywash(&["token-keys", "--rotate"]).code, Some(2));
}
