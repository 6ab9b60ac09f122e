//! Why a handshake with a client fails, in few words, so that it can be counted.
//!
//! The library's error says what broke the protocol, and the client's first message which name it asked for. So a client
//! that refuses a certificate because no certificate has its name is told apart from one that does not trust the issuer.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The connection ended first.
    Gone,
    /// The client sent something other than TLS.
    NotTls,
    /// The client offers no version from TLS 1.2 on.
    OldVersion,
    /// Both sides have no cipher suite, key exchange, signature scheme or protocol in common.
    NothingInCommon,
    /// The client refused the certificate, and no certificate has the name that it asked for.
    UnknownName,
    /// The client refused the certificate.
    CertificateRefused,
    /// The client ended the handshake by another alert.
    ClientAlert,
    /// Anything else, such as a message that breaks the protocol.
    Other,
}

impl HandshakeFailure {
    /// Every failure, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Gone,
        Self::NotTls,
        Self::OldVersion,
        Self::NothingInCommon,
        Self::UnknownName,
        Self::CertificateRefused,
        Self::ClientAlert,
        Self::Other,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::NotTls => "not_tls",
            Self::OldVersion => "old_version",
            Self::NothingInCommon => "nothing_in_common",
            Self::UnknownName => "unknown_name",
            Self::CertificateRefused => "certificate_refused",
            Self::ClientAlert => "client_alert",
            Self::Other => "other",
        }
    }

    /// The failure behind an error. `knows_name`: a certificate has the name that the client asked for, or it asked for
    /// none.
    pub(crate) fn of(error: &io::Error, knows_name: bool) -> Self {
        match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
            Some(error) => Self::of_protocol(error, knows_name),
            None => Self::Gone,
        }
    }

    fn of_protocol(error: &Error, knows_name: bool) -> Self {
        match error {
            Error::AlertReceived(alert) if is_about_certificate(*alert) => {
                if knows_name { Self::CertificateRefused } else { Self::UnknownName }
            }
            Error::AlertReceived(_) => Self::ClientAlert,
            // A record that is none: the library looks at its first bytes only.
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType
                | InvalidMessage::UnknownProtocolVersion
                | InvalidMessage::MessageTooLarge,
            ) => Self::NotTls,
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::SupportedVersionsExtensionRequired
                // Clients send it from TLS 1.2 on, and the library looks for it before it looks at versions.
                | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
            ) => Self::OldVersion,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::NothingInCommon,
            _ => Self::Other,
        }
    }
}

const fn is_about_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
    )
}
