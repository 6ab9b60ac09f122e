//! `bywash token-keys`: makes a file of keys for session tokens or for levels, or rotates the keys
//! in such a file.
//!
//! Rotation is one command on the file that is in use. A new key signs from then on, and the key
//! that signed before only verifies. The new file replaces the old one atomically, with its owner,
//! mode and comments. A gateway that reads the file at that moment finds either the old content or
//! the new content, never a part.

use std::path::Path;

use bywash_command::replace::{create, replace};
use bywash_command::streams::{print, say};
use bywash_command::{Failure, operators};
use bywash_files::LARGEST_SECRET;
use bywash_token::{Secret, Secrets};

use crate::args::TokenKeys;

pub(crate) fn token_keys(args: &TokenKeys) -> Result<(), Failure> {
    let fresh = operators::draw()?;
    let Some(path) = &args.file else {
        return print(&Secrets::fresh(fresh).to_text());
    };
    if args.rotate {
        rotate(path, &fresh).map_err(|why| not_done(path, &why))?;
        say(format!("{}: a new key signs, the previous one still verifies", path.display()));
        return Ok(());
    }
    let text = Secrets::fresh(fresh).to_text();
    let created = create(path, &text).map(drop);
    created.map_err(|error| not_done(path, &format!("cannot be created: {error}")))
}

fn not_done(path: &Path, why: &str) -> Failure {
    Failure::running(format!("{}: {why}", path.display()))
}

fn rotate(path: &Path, fresh: &Secret) -> Result<(), String> {
    let text = bywash_files::secret(path).map_err(|why| why.to_string())?;
    let text = Secrets::rotated(&text, fresh).map_err(|fault| fault.to_string())?;
    if text.len() > LARGEST_SECRET {
        return Err(format!(
            "with another key it would have more than {LARGEST_SECRET} bytes: shorten its comments"
        ));
    }
    replace(path, &text).map_err(|error| error.to_string())
}
