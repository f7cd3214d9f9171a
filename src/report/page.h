// A comparison as one HTML page that stands alone: no other file, font, script or address is needed to read it.
// Complete without its script; follows the reader's light or dark setting; prints in light.
#pragma once
#include <string>

#include "report/accuracy_chart.h"  // accuracy_svg(): the page's first chart as a file for a README
#include "report/comparison.h"

namespace motley::report {

/// report.html, to be written as it is (UTF-8). The same comparison gives the same bytes.
std::string page(const Comparison& comparison);

}  // namespace motley::report
