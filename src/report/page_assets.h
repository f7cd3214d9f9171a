// The page's style sheet and script, as text. The page is complete without the script: it only adds pointing, pinning and copying.
#pragma once
#include <string_view>

namespace motley::report {

extern const std::string_view page_style;
extern const std::string_view page_script;

}  // namespace motley::report
