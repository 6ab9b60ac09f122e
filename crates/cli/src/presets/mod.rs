//! The presets of `bywash init`: one configuration file for each application.

macro_rules! presets {
    ($($name:literal)*) => { [$(($name, include_str!(concat!($name, ".toml")))),*] };
}

/// The name and the text of each preset.
pub(crate) const PRESETS: [(&str, &str); 10] = presets!(
    "wordpress" "woocommerce" "mediawiki" "drupal" "magento" "prestashop" "django" "rails" "laravel" "php-fpm"
);
