// MOTLEY_API marks what libmotley exports; everything else in it is hidden.
#pragma once

#define MOTLEY_API __attribute__((visibility("default")))
