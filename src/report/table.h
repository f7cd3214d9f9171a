// A comparison as a table: for the terminal and for Markdown. Rows keep the order in which the user named them.
#pragma once
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Plain text, aligned, within 120 columns unless the figures alone are wider: long strategy names go on over the next line.
/// The fastest row begins with '*'; a last line explains the columns.
std::string text_table(const Comparison& comparison);

/// The same table in Markdown; the fastest strategy in bold.
std::string markdown_table(const Comparison& comparison);

}  // namespace motley::report
