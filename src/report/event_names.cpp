#include "report/event_names.h"

#include <fmt/format.h>

namespace motley::report {

std::string called(const EventNames::Name& name, std::uint64_t number) { return name ? name(number) : fmt::format("{}", number); }

}  // namespace motley::report
