//! What both HTTP functions need: errors, validation, paging, authentication, OpenAPI.
