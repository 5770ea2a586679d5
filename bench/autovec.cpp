#include "autovec.hpp"

#include "build.h"

extern "C" {
#include "dispatch.h"
}

#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

namespace bench
{
namespace
{

// Beside this program, wherever that is.
std::string module_path()
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) {
        return BENCH_AUTOVEC_MODULE;
    }
    const std::string program(path, static_cast<std::size_t>(length));
    return program.substr(0, program.rfind('/') + 1) + BENCH_AUTOVEC_MODULE;
}

template <typename Function> Function look_up(void *module, const char *name)
{
    void *symbol = dlsym(module, name);
    if (symbol == nullptr) {
        throw std::runtime_error(std::string(BENCH_AUTOVEC_MODULE) + " lacks " + name);
    }
    return reinterpret_cast<Function>(symbol);
}

decltype(&attnres_dispatch) module_dispatch;

const attnres_kernels *module_kernels(attnres_dtype dtype)
{
    return &module_dispatch()->of[dtype];
}

} // namespace

void add_autovec(Contenders &contenders)
{
    void *module = dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
        const char *error = dlerror();
        contenders.absent.push_back({"autovec", error != nullptr ? error : "no module"});
        return;
    }
    const auto set_level = look_up<decltype(&attnres_set_level)>(module, "attnres_set_level");
    module_dispatch = look_up<decltype(&attnres_dispatch)>(module, "attnres_dispatch");
    Contender contender;
    contender.exact = true;
    contender.api = {look_up<decltype(&attnres_read)>(module, "attnres_read"),
                     look_up<decltype(&attnres_block_sum)>(module, "attnres_block_sum"),
                     look_up<decltype(&attnres_block_read)>(module, "attnres_block_read"),
                     module_kernels};
    for (const Contender *ours : contenders.levels()) {
        const attnres_level level = ours->level;
        if (level == ATTNRES_LEVEL_SCALAR || set_level(level) != ATTNRES_OK) {
            continue; // the scalar level is what it is already
        }
        contender.name = std::string("autovec-") + attnres_level_name(level);
        contender.level = level;
        contender.activate = [set_level, level] { set_level(level); };
        contenders.present.push_back(contender);
    }
}

} // namespace bench
