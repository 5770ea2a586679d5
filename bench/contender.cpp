#include "contender.hpp"

#include "autovec.hpp"
#include "build.h"
#include "peer_c.h"

extern "C" {
#include "dispatch.h"
}

#include <stdexcept>

#if BENCH_HAVE_GGML
#include "peer_ggml.hpp"
#endif

namespace bench
{
namespace
{

const attnres_kernels *current_kernels(attnres_dtype dtype)
{
    return &attnres_dispatch()->of[dtype];
}

void add_levels(Contenders &contenders)
{
    std::vector<attnres_level_report> reports(attnres_level_reports(nullptr, 0));
    attnres_level_reports(reports.data(), reports.size());
    for (const attnres_level_report &report : reports) {
        const attnres_level level = report.level;
        if (!report.usable) {
            contenders.absent.push_back({attnres_level_name(level), report.why});
            continue;
        }
        Contender contender;
        contender.name = attnres_level_name(level);
        contender.ours = contender.exact = true;
        contender.level = level;
        contender.api = {attnres_read, attnres_block_sum, attnres_block_read, current_kernels};
        contender.activate = [level] {
            if (attnres_set_level(level) != ATTNRES_OK) {
                throw std::runtime_error("a usable level was refused");
            }
        };
        contenders.present.push_back(contender);
    }
}

void add_peers_in_c(Contenders &contenders)
{
    Contender peer;
    peer.name = "peer-c";
    peer.activate = [] {};
    peer.api = {peer_c_read, peer_c_block_sum, peer_c_block_read, nullptr};
    contenders.present.push_back(peer);
#if BENCH_HAVE_NATIVE
    peer.name = "peer-c-native-fastmath";
    peer.level = contenders.best().level;
    peer.api = {peer_c_native_read, peer_c_native_block_sum, peer_c_native_block_read, nullptr};
    contenders.present.push_back(peer);
#else
    contenders.absent.push_back(
        {"peer-c-native-fastmath", "this compiler has no -march=native, or it is a cross build"});
#endif
}

} // namespace

const Contender &Contenders::best() const
{
    return *levels().back();
}

std::vector<const Contender *> Contenders::levels() const
{
    std::vector<const Contender *> list;
    for (const Contender &contender : present) {
        if (contender.ours) {
            list.push_back(&contender);
        }
    }
    return list;
}

Contenders find_contenders()
{
    Contenders contenders;
    add_levels(contenders);
    add_autovec(contenders);
    add_peers_in_c(contenders);
#if BENCH_HAVE_GGML
    contenders.present.push_back(ggml_contender());
#else
    contenders.absent.push_back({"ggml", "pkg-config found none when this was built"});
#endif
    return contenders;
}

} // namespace bench
