// What llama.cpp's log is sent to while nobody listens. Knows no llama.cpp: the type is ggml_log_callback's.
#pragma once

// void (*)(enum ggml_log_level level, const char *text, void *data); a C enum is passed as an int.
extern "C" void localctx_ignore_log(int level, const char *text, void *data);
