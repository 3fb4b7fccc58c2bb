//! The page for a person: one file, nothing loaded from elsewhere, fed by the JSON routes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::answer::typed;

const PAGE: &str = include_str!("page.html");

/// Own script and style, own figures, and nothing else; nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(super) async fn get() -> Response {
    let mut answer = typed(StatusCode::OK, "text/html; charset=utf-8", PAGE);
    let policy = HeaderValue::from_static(POLICY);
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere_and_writes_no_markup_from_data() {
        for foreign in ["http://", "https://", "<link", "@import", "src=", "url("] {
            assert!(!PAGE.contains(foreign), "{foreign}");
        }
        for risky in ["innerHTML", "outerHTML", "document.write", "eval(", "insertAdjacentHTML"] {
            assert!(!PAGE.contains(risky), "{risky}");
        }
    }
}
