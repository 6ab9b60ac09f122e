//! `bywash token-keys`: a file of keys for session tokens or for levels, and the exchange of the key in
//! one.
//!
//! Exchanging is one command on the file that is in use: the key that signs becomes the one that
//! still verifies, a new one signs. The new file takes the old one's place at once, with its owner,
//! mode and comments, so that a gateway which reads it just then finds one of the two and never a
//! half.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use bywash_files::LARGEST_SECRET;
use bywash_token::{Secret, Secrets};
use ring::rand::{SecureRandom, SystemRandom};

use crate::args::TokenKeys;
use crate::failure::Failure;
use crate::streams::{print, say};

pub(crate) fn token_keys(args: &TokenKeys) -> Result<(), Failure> {
    let fresh = draw()?;
    let Some(path) = &args.file else {
        return print(&Secrets::fresh(fresh).to_text());
    };
    if args.rotate {
        rotate(path, &fresh).map_err(|why| not_done(path, &why))?;
        say(format!("{}: a new key signs, the one before still verifies", path.display()));
        return Ok(());
    }
    let text = Secrets::fresh(fresh).to_text();
    create(path, &text).map(|_| ()).map_err(|error| not_done(path, &error.to_string()))
}

fn not_done(path: &Path, why: &str) -> Failure {
    Failure::running(format!("{}: {why}", path.display()))
}

fn draw() -> Result<Secret, Failure> {
    let mut bytes = [0; 32];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| Failure::running("the system has no random bytes to give"))?;
    Ok(Secret::from_bytes(bytes))
}

/// A new file that only its owner may read. What is there already stays.
fn create(path: &Path, text: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}

fn rotate(path: &Path, fresh: &Secret) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    // Where a symbolic link leads, so that the link stays.
    let path = fs::canonicalize(path).map_err(told)?;
    let text = bywash_files::secret(&path).map_err(|why| why.to_string())?;
    let found = fs::metadata(&path).map_err(told)?;
    let text = Secrets::rotated(&text, fresh).map_err(|fault| fault.to_string())?;
    if text.len() > LARGEST_SECRET {
        return Err(format!("with another key it would have more than {LARGEST_SECRET} bytes"));
    }
    let beside = beside(&path);
    let replaced = create(&beside, &text).and_then(|file| {
        let now = file.metadata()?;
        if (now.uid(), now.gid()) != (found.uid(), found.gid()) {
            fchown(&file, Some(found.uid()), Some(found.gid()))?;
        }
        file.set_permissions(Permissions::from_mode(found.mode() & 0o777))?;
        fs::rename(&beside, &path)
    });
    replaced.map_err(|error| {
        let _ = fs::remove_file(&beside);
        told(error)
    })
}

/// A name for what is not finished yet.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}
