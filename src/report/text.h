// Text of others made safe for where it is shown: a terminal, Markdown, HTML or SVG. Knows nothing of what the text means.
// Width is counted in code points: one column each, which holds for the names that strategies and workers carry.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace motley::report {

/// Valid UTF-8 on one line: tabs and line ends become spaces, other control characters and broken bytes '?'.
std::string printable(std::string_view text);

/// printable(), with & < > " ' as entities: fit for element content and for quoted attributes.
std::string escape_xml(std::string_view text);

/// printable(), fit for one cell of a Markdown table.
std::string escape_markdown(std::string_view text);

/// Columns that `text` takes. Expects printable text.
std::size_t width(std::string_view text);

/// At most `most` columns (at least 3), the middle replaced by an ellipsis: both the name and its last override stay readable.
std::string shorten(std::string_view text, std::size_t most);

/// Lines of at most `most` columns (at least 1), broken after ':' or ',' where possible. Empty text gives one empty line.
std::vector<std::string> wrap(std::string_view text, std::size_t most);

}  // namespace motley::report
