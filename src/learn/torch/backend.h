// Settings of torch that hold for the whole process.
#pragma once
#include <string>

namespace motley::learn {

/// `precision`: fp32, tf32 or bf16. In all but fp32, GPUs multiply fp32 matrices in tf32.
void use_precision(const std::string& precision);

}  // namespace motley::learn
