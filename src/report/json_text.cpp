#include "report/json_text.h"

#include <boost/json/serialize.hpp>
#include <cmath>

namespace motley::report {
namespace {

void null_what_is_not_finite(boost::json::value& value) {
  if (auto* object = value.if_object())
    for (auto& member : *object) null_what_is_not_finite(member.value());
  if (auto* array = value.if_array())
    for (auto& item : *array) null_what_is_not_finite(item);
  if (const double* number = value.if_double(); number != nullptr && !std::isfinite(*number)) value = nullptr;
}

}  // namespace

std::string json_text(boost::json::value value) {
  null_what_is_not_finite(value);
  return boost::json::serialize(value);
}

}  // namespace motley::report
