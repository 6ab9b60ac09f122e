//! Plays an operator who uses the admin listener with a token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_token::operator::{Operator, OperatorKeys, sign};
use bywash_token::{Secret, Secrets, UnixTime};
use serde_json::Value;

use crate::setup::Running;
use crate::wire::{Message, Wire};

/// The operators' key of every gateway in these tests, in a folder of the test process.
pub(crate) static KEY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("bywash-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("operators.key");
    write_key(&path, 7);
    path
});

pub(crate) fn write_key(path: &std::path::Path, byte: u8) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, secrets(byte).to_text()).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn secrets(byte: u8) -> Secrets {
    Secrets::fresh(Secret::from_bytes([byte; 32]))
}

/// Returns the time `seconds` from now.
pub(crate) fn in_seconds(seconds: i64) -> UnixTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at = i64::try_from(now).unwrap() + seconds * 1000;
    UnixTime::from_millis(at.try_into().unwrap())
}

/// Returns the keys derived from this byte.
pub(crate) fn keys(byte: u8) -> OperatorKeys {
    OperatorKeys::new(&secrets(byte))
}

/// Returns a token signed with the key derived from this byte.
pub(crate) fn token(byte: u8, name: &str, decides: bool, until: UnixTime) -> String {
    sign(&keys(byte), &Operator::new(name, decides).unwrap(), until)
}

/// Returns the fields of a request by an operator with all rights.
pub(crate) fn fields(address: SocketAddr) -> String {
    let token = token(7, "ana", true, in_seconds(60));
    format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n")
}

/// Sends a POST with this document as an operator. Returns the response.
pub(crate) fn says(gateway: &Running, target: &str, document: &Value) -> Message {
    let fields = format!("{}Bywash-Admin: 1\r\n", fields(gateway.admin()));
    says_with(gateway.admin(), &fields, target, &document.to_string())
}

pub(crate) fn says_with(address: SocketAddr, fields: &str, target: &str, body: &str) -> Message {
    let mut wire = Wire::connect(address);
    let length = body.len();
    wire.send(format!(
        "POST {target} HTTP/1.1\r\n{fields}Content-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    ));
    wire.answer().expect("the admin listener answers")
}

/// Parses the document in a response.
pub(crate) fn document(answer: &Message) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()))
}
