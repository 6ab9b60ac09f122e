//! Reads the service level that the gateway has signed for a request.

use std::ffi::{c_char, c_int};
use std::path::Path;

use bywash_levels::{Gateway, GatewayError, LevelRefusal, Unreadable};

use crate::options::text;
use crate::process::Home;
use crate::result::{CallError, call, making};

/// The keys of a gateway: `struct bywash_levels_gateway` of `levels.h`.
#[derive(Debug)]
pub(crate) struct GatewayHandle {
    gateway: Gateway,
    home: Home,
}

/// The size in bytes of a level's name with its terminating zero: `BYWASH_LEVELS_NAME`.
const NAME: usize = bywash_levels::LONGEST_NAME + 1;

impl From<GatewayError> for CallError {
    fn from(error: GatewayError) -> Self {
        let errno = match &error {
            GatewayError::Unreadable { cause: Unreadable::System(error), .. } => {
                error.raw_os_error().unwrap_or(libc::EIO)
            }
            GatewayError::Unreadable { cause: Unreadable::Open { .. }, .. } => libc::EPERM,
            GatewayError::Unreadable { .. } | GatewayError::NoKeys { .. } => libc::EINVAL,
        };
        Self::new(errno, error.to_string())
    }
}

impl From<LevelRefusal> for CallError {
    fn from(refusal: LevelRefusal) -> Self {
        let errno = match refusal {
            LevelRefusal::TooLong | LevelRefusal::Malformed => libc::EBADMSG,
            LevelRefusal::Forged => libc::EKEYREJECTED,
            LevelRefusal::TooOld | LevelRefusal::FromTheFuture => libc::EKEYEXPIRED,
        };
        Self::new(errno, refusal.to_string())
    }
}

/// Reads the keys of a gateway from a file; see `levels.h`.
///
/// # Safety
/// `key_file` is null or a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_gateway_new(
    key_file: *const c_char,
) -> *mut GatewayHandle {
    making(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(key_file, "the name of the key file")? };
        let gateway = Gateway::read(Path::new(path))?;
        Ok(Box::new(GatewayHandle { gateway, home: Home::here() }))
    })
}

/// Frees the keys of a gateway; see `levels.h`.
///
/// # Safety
/// `gateway` is null, or keys that were not freed and that no other thread uses.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_gateway_free(gateway: *mut GatewayHandle) -> c_int {
    call(|| {
        if !gateway.is_null() {
            // SAFETY: it was boxed by `making`, and the caller promises that it is used no more.
            drop(unsafe { Box::from_raw(gateway) });
        }
        Ok(())
    })
}

/// Writes the level that a header field contains to `level`; see `levels.h`.
///
/// # Safety
/// `gateway` is null, or keys that were not freed; `field` is null or has `length` bytes; `level`
/// is null or has room for `BYWASH_LEVELS_NAME`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_gateway_level(
    gateway: *mut GatewayHandle,
    field: *const c_char,
    length: usize,
    level: *mut c_char,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { gateway.as_ref() }.ok_or_else(|| CallError::null("the gateway"))?;
        known.home.check()?;
        if field.is_null() || level.is_null() {
            return Err(CallError::null(if field.is_null() { "the field" } else { "the level" }));
        }
        // No object is larger than `isize::MAX`, so a greater length is a mistake of the caller.
        if isize::try_from(length).is_err() {
            return Err(LevelRefusal::TooLong.into());
        }
        // SAFETY: the caller promises that `field` has `length` bytes.
        let field = unsafe { std::slice::from_raw_parts(field.cast::<u8>(), length) };
        let name = known.gateway.level(field)?.as_bytes();
        let mut text = [0; NAME];
        text[..name.len()].copy_from_slice(name);
        // SAFETY: the caller promises that `level` has room for a name and its terminating byte.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), level.cast(), name.len() + 1) };
        Ok(())
    })
}
